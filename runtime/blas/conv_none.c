/* Stub of a build without the header of oneDNN: kernels use im2col instead. */
#include "runtime/blas/conv.h"

struct convs *
convs_open(void *onednn, const struct ckr_blocked *b, uint32_t n, int threads,
           int bf16)
{
	(void)onednn, (void)b, (void)n, (void)threads, (void)bf16;
	return NULL;
}

void
convs_fill_env(struct convs *c, struct ckr_env *env)
{
	(void)c, (void)env;
}

void
convs_close(struct convs *c)
{
	(void)c;
}
