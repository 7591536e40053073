/* Tensors of a file of weights that have no place in the model. */
#include <stdio.h>
#include <string.h>

#include "runtime/model/rt.h"

enum { SHOWN = 3 };

/* Optimizer state in a checkpoint is called OPTIMIZER.STATE.NAME. */
static bool
is_state_name(const struct array_file *f, const char *name)
{
	const char *optimizer = array_meta(f, "optimizer");
	size_t n = optimizer ? strlen(optimizer) : 0;

	return n && !strncmp(name, optimizer, n) && name[n] == '.';
}

/* PyTorch counts the batches of a BatchNorm; no graph reads that. */
static bool
is_counter(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, "num_batches_tracked");
}

static bool
has_place(const ckr_ctx *c, const struct array_file *f, const char *name)
{
	const struct ckr_tensor *t = rt_find(c, name, NULL);

	return (t && rt_is_weight(t)) || is_state_name(f, name)
	       || is_counter(name);
}

void
rt_note_unread(ckr_ctx *c, const struct array_file *f)
{
	char list[SHOWN * (NAME_TEXT + 8)] = "", name[NAME_TEXT];
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		size_t at = strlen(list);

		if (has_place(c, f, f->v[i].name) || n++ >= SHOWN)
			continue;
		snprintf(list + at, sizeof(list) - at, "%s'%s'",
		         at ? ", " : "", err_name(name, sizeof(name),
		                                  f->v[i].name));
	}
	*c->unread.text = 0;
	if (n)
		err_set(&c->unread, CKR_OK, "%s: %zu of %zu tensors %s no "
		        "place in the model: %s%s; what was compiled in as a "
		        "constant keeps its value", f->path, n, f->n,
		        n == 1 ? "has" : "have", list,
		        n > SHOWN ? ", ..." : "");
}

const char *
ckr_unread(const ckr_ctx *c)
{
	return c ? c->unread.text : "";
}
