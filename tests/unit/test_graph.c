#include "tests/unit/unit.h"
#include "ir/verify/verify.h"

#include <stdlib.h>
#include <string.h>

static const char diamond[] =
	"graph @g {\n"
	"	input %x: f32[2]\n"
	"	%a = exp %x from \"n1\" Exp\n"
	"	%b = neg %a\n"
	"	%c = abs %a\n"
	"	%d output = add %b, %c\n"
	"	%e = sqrt %a\n"
	"}\n";

static void
names(void **state)
{
	Graph *g = graph_new("g");
	ValId a = val_new(g, V_INPUT, "a", DT_F32, shape_scalar());
	ValId b = val_new(g, V_INPUT, "a", DT_F32, shape_scalar());
	ValId c = val_new(g, V_INPUT, NULL, DT_F32, shape_scalar());

	(void)state;
	assert_string_equal(g->val[a].name, "a");
	assert_string_equal(g->val[b].name, "a.2");
	assert_int_equal(val_find(g, "a.2"), b);
	assert_int_equal(val_find(g, g->val[c].name), c);
	assert_int_equal(val_find(g, "none"), 0);
	val_rename(g, b, "z");
	assert_int_equal(val_find(g, "z"), b);
	assert_int_equal(val_find(g, "a.2"), 0);
	/* many names force the set to grow over the stale slot */
	for (int i = 0; i < 1000; i++)
		val_new(g, V_INPUT, "a", DT_F32, shape_scalar());
	assert_int_equal(val_find(g, "a"), a);
	assert_int_equal(val_find(g, "z"), b);
	FOR_VALS (v, g)
		assert_int_equal(val_find(g, v->name), val_id(g, v));
	graph_free(g);
}

/* Equal names and origins in great number cost what others do: with a search
 * from the first suffix on this would take minutes. */
static void
equal_names(void **state)
{
	enum { MANY = 200000 };
	Graph *g = graph_new("f");
	ValId v = 0;
	char want[32];

	(void)state;
	for (int i = 0; i < MANY; i++)
		v = val_new(g, V_INPUT, "a", DT_F32, shape_scalar());
	snprintf(want, sizeof want, "a.%d", MANY);
	assert_string_equal(g->val[v].name, want);
	val_rename(g, v, "a");
	assert_string_equal(g->val[v].name, "a.200001");
	val_rename(g, val_find(g, "a.7"), "a.7");
	assert_int_not_equal(val_find(g, "a.7"), 0);
	graph_free(g);
}

static void
many_origins(void **state)
{
	enum { MANY = 60000 };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct sink s;
	Graph *g;

	(void)state;
	fputs("graph @f {\n\tinput %x: f32[2]\n", f);
	for (int i = 0; i < MANY; i++)
		fprintf(f, "\t%%y%d = neg %%x from \"n%d\" Neg\n", i, i);
	fputs("\t%z = neg %x from \"n7\" Neg\n}\n", f);
	fclose(f);
	sink_open(&s);
	g = parse(&s, text);
	assert_non_null(g);
	assert_int_equal(g->norigin, MANY + 1);
	assert_int_equal(g->node[MANY + 1].origin[0], 8);
	graph_free(g);
	sink_close(&s);
	free(text);
}

static void
dead_code(void **state)
{
	struct sink s;
	Graph *g;

	(void)state;
	sink_open(&s);
	g = parse(&s, diamond);
	assert_non_null(g);
	assert_int_equal(g->nnode, 6);
	graph_dce(g);
	assert_int_equal(g->nnode, 5);
	assert_int_equal(g->val[val_find(g, "e")].def, 0);
	assert_true(graph_verify(g, s.diag));
	graph_free(g);
	sink_close(&s);
}

static void
reorder(void **state)
{
	struct sink s;
	Graph *g;
	const NodeId order[] = { 1, 3, 2, 4 };

	(void)state;
	sink_open(&s);
	g = parse(&s, diamond);
	g->node[4].of = 2;
	graph_reorder(g, order, 4);
	assert_int_equal(g->node[2].op, OP_ABS);
	assert_int_equal(g->node[4].of, 3);
	assert_int_equal(g->val[val_find(g, "b")].def, 3);
	assert_int_equal(g->val[val_find(g, "e")].def, 0);
	graph_free(g);
	sink_close(&s);
}

static void
uses(void **state)
{
	struct sink s;
	Graph *g;
	Arena *tmp = arena_new();
	struct uses u;
	ValId a;

	(void)state;
	sink_open(&s);
	g = parse(&s, diamond);
	u = graph_uses(g, tmp);
	a = val_find(g, "a");
	assert_int_equal(u.first[a + 1] - u.first[a], 3);
	assert_int_equal(u.node[u.first[a]], 2);
	assert_int_equal(u.node[u.first[a] + 1], 3);
	assert_int_equal(u.node[u.first[a] + 2], 5);
	val_replace(g, a, val_find(g, "x"), 1, 3);
	assert_int_equal(g->node[2].in[0], val_find(g, "x"));
	assert_int_equal(g->node[3].in[0], a);
	arena_free(tmp);
	graph_free(g);
	sink_close(&s);
}

static void
clone(void **state)
{
	struct sink s;
	Graph *g, *c;
	char *before, *after;

	(void)state;
	sink_open(&s);
	g = parse(&s, diamond);
	before = print(g);
	c = graph_clone(g);
	g->val[1].kind = V_PARAM;
	g->node[1].in[0] = 0;
	graph_free(g);
	after = print(c);
	assert_string_equal(before, after);
	free(before);
	free(after);
	graph_free(c);
	sink_close(&s);
}

static void
attributes(void **state)
{
	Attr a = attr_default(OP_TRANSPOSE), b = attr_default(OP_TRANSPOSE);

	(void)state;
	assert_true(attr_equal(OP_TRANSPOSE, &a, &b));
	a.TRANSPOSE.perm = (IntList){ 2, { 1, 0 } };
	assert_false(attr_equal(OP_TRANSPOSE, &a, &b));
	b.TRANSPOSE.perm = (IntList){ 2, { 1, 0, 9 } };
	assert_true(attr_equal(OP_TRANSPOSE, &a, &b));
	a = attr_default(OP_LAYERNORM);
	assert_int_equal(a.LAYERNORM.axis, -1);
	assert_true(a.LAYERNORM.eps == 1e-5);
}

static void
origins(void **state)
{
	Graph *g = graph_new("g");
	ValId x = val_new(g, V_INPUT, "x", DT_F32, shape_scalar());
	uint32_t o1 = origin_new(g, "a", "Exp"), o2 = origin_new(g, "", "Log");
	uint32_t o3 = origin_new(g, "c", "Abs");
	Node *n = node_new(g, OP_NEG, 1, &x, 0, 0);

	(void)state;
	assert_string_equal(g->origin[o2].name, "#2");
	node_add_origin(g, n, (const uint32_t[]){ o1, o3 }, 2);
	node_add_origin(g, n, (const uint32_t[]){ o2, o3 }, 2);
	assert_int_equal(n->norigin, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(n->origin[i], i + 1);
	graph_free(g);
}

int
test_graph(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(equal_names),
		cmocka_unit_test(many_origins), cmocka_unit_test(dead_code),
		cmocka_unit_test(reorder), cmocka_unit_test(uses),
		cmocka_unit_test(clone), cmocka_unit_test(attributes),
		cmocka_unit_test(origins),
	};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
