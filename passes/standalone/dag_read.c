/* Planning graphs from JSON: nodes with costs, links to later nodes.
 *
 * {"nodes": [{"id", "name", "backward", "cost_ram", "cost_cpu"}],
 *  "links": [{"source", "target"}]}; other keys are skipped.
 */
#include "passes/standalone/standalone.h"
#include "passes/cost/cost.h"
#include "runtime/support/json.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 1 << 22, LINKS_MAX = 1 << 25 };

struct dag_reader {
	struct json json;
	const char *text;               /* as it was read */
	struct dag *g;
	size_t node_cap, ram_cap, cpu_cap, back_cap;
	int32_t *link;
	size_t link_cap;
	int32_t nlink;
	Arena *arena;
	Diag *diag;
	bool failed;
};

/* Said once, with the line. */
static bool
read_failed(struct dag_reader *r, const char *what)
{
	size_t line = 1;

	if (r->failed)
		return false;
	r->failed = true;
	for (size_t i = 0; i < r->json.at; i++)
		line += r->text[i] == '\n';
	return diag_error(r->diag, "line %zu: %s", line, what);
}

struct node {
	int64_t id, ram;
	double cpu;
	bool backward;
	char *name;
};

static bool
node_member(struct json *j, const char *key, void *data)
{
	struct node *n = data;

	if (!strcmp(key, "id"))
		return json_uint(j, &n->id);
	if (!strcmp(key, "cost_ram"))
		return json_uint(j, &n->ram);
	if (!strcmp(key, "cost_cpu"))
		return json_number(j, &n->cpu) && n->cpu >= 0;
	if (!strcmp(key, "backward")) {
		n->backward = json_word(j, "true");
		return n->backward || json_skip(j);
	}
	if (!strcmp(key, "name") && json_accept(j, '"')) {
		j->at--;
		return json_string(j, &n->name);
	}
	return json_skip(j);
}

static bool
read_dag_node(struct json *j, void *data)
{
	struct dag_reader *r = data;
	struct node n = { -1, -1, -1, false, NULL };
	struct dag *g = r->g;
	size_t at = (size_t)g->n, need = at + 1;

	if (!json_object(j, node_member, &n))
		return read_failed(r, "expected a node with id, cost_ram (whole"
			" bytes) and cost_cpu (>= 0)");
	if (n.id != g->n)
		return read_failed(r, "the ids of the nodes must be 0..n-1 in "
			"order");
	if (n.ram < 0 || n.cpu < 0)
		return read_failed(r, "a node lacks cost_ram or cost_cpu");
	if (g->n >= NODES_MAX)
		return read_failed(r, "too many nodes");
	g->ram = arena_grow(r->arena, g->ram, at, &r->ram_cap, need,
	                    sizeof *g->ram);
	g->cpu = arena_grow(r->arena, g->cpu, at, &r->cpu_cap, need,
	                    sizeof *g->cpu);
	g->backward = arena_grow(r->arena, g->backward, at, &r->back_cap, need,
	                         sizeof *g->backward);
	g->name = arena_grow(r->arena, g->name, at, &r->node_cap, need,
	                     sizeof *g->name);
	g->ram[at] = n.ram;
	g->cpu[at] = n.cpu;
	g->backward[at] = n.backward;
	g->name[at] = n.name ? n.name
		: arena_printf(r->arena, "n%d", (int)at);
	g->n++;
	return true;
}

static bool
link_member(struct json *j, const char *key, void *data)
{
	int64_t *end = data;

	if (!strcmp(key, "source"))
		return json_uint(j, &end[0]);
	if (!strcmp(key, "target"))
		return json_uint(j, &end[1]);
	return json_skip(j);
}

static bool
read_link(struct json *j, void *data)
{
	struct dag_reader *r = data;
	int64_t end[2] = { -1, -1 };

	if (!json_object(j, link_member, end))
		return read_failed(r, "expected a link with source and target");
	if (end[0] < 0 || end[0] >= end[1] || end[1] >= NODES_MAX)
		return read_failed(r, "a link must lead to a later node");
	if (r->nlink >= LINKS_MAX)
		return read_failed(r, "too many links");
	r->link = arena_grow(r->arena, r->link, 2 * (size_t)r->nlink,
	                     &r->link_cap, 2 * (size_t)r->nlink + 2,
	                     sizeof *r->link);
	r->link[2 * r->nlink] = (int32_t)end[0];
	r->link[2 * r->nlink + 1] = (int32_t)end[1];
	r->nlink++;
	return true;
}

static bool
top_member(struct json *j, const char *key, void *data)
{
	bool nodes = !strcmp(key, "nodes");

	if (!nodes && strcmp(key, "links") != 0)
		return json_skip(j);
	return json_list(j, nodes ? read_dag_node : read_link, data)
		|| read_failed(data, "expected a list");
}

static int
by_ends(const void *p, const void *q)
{
	const int32_t *a = p, *b = q;

	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	return (a[1] > b[1]) - (a[1] < b[1]);
}

/* Sort links and leave out equal ones. */
static bool
check_links(struct dag_reader *r)
{
	int32_t n = 0;

	for (int32_t k = 0; k < r->nlink; k++)
		if (r->link[2 * k + 1] >= r->g->n)
			return diag_error(r->diag, "a link leads to node %d, "
			                  "but there are %d nodes",
			                  (int)r->link[2 * k + 1],
			                  (int)r->g->n);
	if (r->nlink)
		qsort(r->link, (size_t)r->nlink, 2 * sizeof *r->link, by_ends);
	for (int32_t k = 0; k < r->nlink; k++) {
		int32_t *l = &r->link[2 * k];

		if (n && l[0] == r->link[2 * n - 2]
		    && l[1] == r->link[2 * n - 1])
			continue;
		r->link[2 * n] = l[0];
		r->link[2 * n + 1] = l[1];
		n++;
	}
	r->nlink = n;
	return true;
}

bool
dag_read(const char *text, size_t n, struct dag *g, Arena *arena, Diag *diag)
{
	struct dag_reader r = {
		.json = { .text = arena_alloc(arena, n + 1), .size = n },
		.text = text, .g = g, .arena = arena, .diag = diag,
	};
	int64_t sum = 0;
	double cost = 0;

	memset(g, 0, sizeof *g);
	memcpy(r.json.text, text, n);
	if (!json_object(&r.json, top_member, &r))
		return read_failed(&r, "not JSON");
	if (!json_end(&r.json))
		return read_failed(&r,
		                   "expected the end of the file after the "
		                   "graph, found more text");
	if (g->n == 0)
		return diag_error(diag, "expected a non-empty list \"nodes\"");
	for (int32_t i = 0; i < g->n; i++) {
		cost += g->cpu[i];
		if (__builtin_add_overflow(sum, g->ram[i], &sum)
		    || sum > INT64_MAX / 4)
			return diag_error(diag, "the total cost_ram of all "
			                  "nodes exceeds 2^61 bytes");
	}
	if (cost > COST_MAX)
		return diag_error(diag, "the total cost_cpu of all nodes "
		                  "exceeds %g", COST_MAX);
	if (!check_links(&r))
		return false;
	dag_finish(g, r.link, r.nlink, arena);
	return true;
}
