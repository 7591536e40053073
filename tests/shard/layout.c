/* The sharding strategy that pass shard chooses, its cost and its placements,
 * as JSON for layout.py.
 *
 *     shard_layout [-w] CKC-ARGUMENTS...
 *
 * -w: equal layers are not counted once.
 */
#include <stdio.h>
#include <string.h>

#include "tests/ref/train.h"

static const char *
placement_of(const Placement *s)
{
	static char text[8];

	if (s->kind != PLACEMENT_SHARD)
		return s->kind == PLACEMENT_REPLICATE_PARTIAL ? "R"
			: s->kind == PLACEMENT_PARTIAL ? "P" : "I";
	snprintf(text, sizeof text, "S%d", s->axis);
	return text;
}

static void
print_placements(const Graph *g)
{
	const char *sep = "";

	printf(", \"state\": {");
	FOR_VALS (v, g) {
		if (v->kind != V_PARAM && !v->def)
			continue;
		printf("%s\"%s\": \"%s\"", sep, v->name,
		       placement_of(&v->placement));
		sep = ", ";
	}
	printf("}");
}

static void
print_ops(const Graph *g)
{
	int count[OP_COUNT] = { 0 };
	const char *sep = "";

	FOR_NODES (n, g)
		count[n->op]++;
	printf(", \"ops\": {");
	for (int op = 0; op < OP_COUNT; op++)
		if (count[op]) {
			printf("%s\"%s\": %d", sep, op_info[op].text,
			       count[op]);
			sep = ", ";
		}
	printf("}");
}

int
main(int argc, char **argv)
{
	struct run r = { .steps = 0 };
	bool whole = argc > 1 && strcmp(argv[1], "-w") == 0;
	int status = run_parse(&r, argc - whole, argv + whole);

	if (status != CLI_GO)
		return status;
	r.cli.opt.strategy_per_node = whole;
	if (!run_compile(&r))
		return 1;
	printf("{\"seconds\": %.17g, \"second\": [", r.strategy_sec);
	for (int i = 0; i < r.nrunner_up; i++)
		printf("%s{\"value\": \"%s\", \"seconds\": %.17g, "
		       "\"state\": \"%s\"}", i ? ", " : "",
		       r.runner_up[i].value, r.runner_up[i].sec,
		       placement_of(&r.runner_up[i].placement));
	printf("]");
	print_placements(r.g);
	print_ops(r.g);
	printf("}\n");
	run_close(&r);
	return 0;
}
