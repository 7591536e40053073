/* Errors of calls to the GPU's driver. */
#include "runtime/device/gpu.h"

struct gpu *
gpu_of(struct device *d)
{
	return (struct gpu *)d;
}

bool
gpu_done(struct gpu *g, cu_result r, const char *what)
{
	const char *text = NULL;

	if (r == 0)
		return true;
	if (g->device.first.text[0])
		return false;
	if (g->cu.error_text)
		g->cu.error_text(r, &text);
	err_set(&g->device.first, r == CU_OUT_OF_MEMORY ? CKR_ENOMEM : CKR_EIO,
	        "GPU %s: %s: %s (%d)", g->name, what,
	        text ? text : "unknown error", r);
	/* other processes wait for what it cannot send them now */
	if (g->device.before_wait)
		g->device.status = CKR_ERANK;
	return false;
}
