/* The table of ONNX operators, and look-ups in it. */
#include "frontend/import/node_import.h"

#include <string.h>

static const struct onnx_op table[] = {
#define ROW(text, of, version, least, most, ...) \
	{ .name = text, .domain = of, .since = version, .nin_min = least, \
	  .nin_max = most, __VA_ARGS__ },
#define ONNX(text, of, version, least, most, ...) \
	ROW(text, of, version, least, most, .run = run_##__VA_ARGS__)
#define REFUSED ROW
#include "frontend/import/operators.h"
#undef ROW
};

const struct onnx_op *
onnx_op_find(const char *domain, const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(table[i].name, name) == 0
		    && strcmp(table[i].domain, domain) == 0)
			return &table[i];
	return NULL;
}

bool
onnx_op_can(const struct flat *f, const struct flat_node *n)
{
	return n->op && n->op->run && (!n->op->can || n->op->can(f, n));
}
