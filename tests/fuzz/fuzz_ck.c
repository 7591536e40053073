/* The textual form: what reads prints to something that reads back to the same
 * text, and goes through the passes. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

#include <stdlib.h>
#include <string.h>

static const char *const passes[] = {
	NULL, "none", "bind,fold", "fold,canon,loss",
	"fold,loss,autodiff,optim", "fold,loss,autodiff,optim,fuse,layout",
};

const unsigned fuzz_variants = sizeof passes / sizeof *passes;
const bool fuzz_protobuf = false;

enum { NODES = 3000 };

static char *
print(const Graph *g)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		fuzz_fail("open_memstream: %m");
	text_print(g, f);
	fclose(f);
	return text;
}

static void
read_back(Graph *g, Diag *diag)
{
	char *once, *twice;
	Graph *h;

	g->props |= graph_props(g);
	once = print(g);
	h = text_parse("again.ck", once, strlen(once), diag);
	if (!h)
		fuzz_fail("what is printed does not read back: %s\n%s",
		          fuzz_said(), once);
	twice = print(h);
	if (strcmp(once, twice) != 0)
		fuzz_fail("printed twice:\n%s\nand\n%s", once, twice);
	free(once);
	free(twice);
	graph_free(h);
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	Diag *diag = diag_new("ckc", fuzz_messages());
	Graph *g = text_parse("x.ck", (const char *)data, n, diag);
	bool ok = g != NULL;

	fuzz_judge(ok, diag_errors(diag));
	if (ok)
		read_back(g, diag);
	if (ok && g->nnode < NODES) {
		struct options opt = plan_options();

		ok = plan_all(g, &opt, passes[variant], diag);
		fuzz_judge(ok, diag_errors(diag));
	}
	graph_free(g);
	diag_free(diag);
}
