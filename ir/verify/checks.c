/* Faults that the files of the verifier report. */
#include "ir/verify/checks.h"

bool
verify_bad(struct verify *c, const Node *n, const Val *v, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	c->faults++;
	if (!c->d)
		return false;
	if (n)
		return diag_error(c->d, "node %u (%s%s%s): %s",
		                  node_id(c->g, n),
		                  n->op < OP_COUNT ? op_info[n->op].text : "?",
		                  v ? ", value " : "", v ? v->name : "", text);
	if (v)
		return diag_error(c->d, "value %u (%s): %s", val_id(c->g, v),
		                  v->name, text);
	return diag_error(c->d, "%s", text);
}
