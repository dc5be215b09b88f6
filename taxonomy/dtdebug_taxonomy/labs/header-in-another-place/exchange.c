#include <Python.h>
#include <nccl.h>

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast_exchange", "Exchanges gradients.", -1, 0};

PyMODINIT_FUNC PyInit_fast_exchange(void)
{
    return PyModule_Create(&module);
}
