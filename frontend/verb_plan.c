#include "frontend/verbs.h"
bool
verb_plan(const struct cli *c, Arena *arena, Diag *diag)
{
	(void)c;
	(void)arena;
	return diag_error(diag, "not built yet");
}
