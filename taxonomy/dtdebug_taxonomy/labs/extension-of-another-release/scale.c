#if RELEASE == 1
struct view { float *data; long size; };
#else
struct view { long size; float *data; };
#endif

void scale(struct view *v, float factor)
{
    for (long i = 0; i < v->size; i++)
        v->data[i] *= factor;
}
