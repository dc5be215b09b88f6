/* Stands for the header of the library. */
#define NCCL_MAJOR 2
