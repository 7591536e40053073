/* (to come) */
#include "frontend/flat.h"

const struct onnx_template *
onnx_get_template(const struct onnx_file *f, const char **why)
{
	*why = f->why_no_template;
	return f->template;
}

void
template_build(struct onnx_file *f, const struct flat *flat)
{
	(void)flat;
	f->why_no_template = "not yet";
}
