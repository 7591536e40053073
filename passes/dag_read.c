/* Planning graphs from JSON: nodes with costs, links to later nodes.
 *
 * {"nodes": [{"id", "name", "backward", "cost_ram", "cost_cpu"}],
 *  "links": [{"source", "target"}]}; other keys are skipped.
 */
#include "passes/dag.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, NODES_MAX = 1 << 22, LINKS_MAX = 1 << 25 };

struct reader {
	const char *s, *end;
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
fail(struct reader *r, const char *begin, const char *what)
{
	size_t line = 1;

	if (r->failed)
		return false;
	r->failed = true;
	for (const char *c = begin; c < r->s; c++)
		line += *c == '\n';
	return diag_error(r->diag, "line %zu: %s", line, what);
}

static void
blank(struct reader *r)
{
	while (r->s < r->end && (*r->s == ' ' || *r->s == '\t'
	                         || *r->s == '\n' || *r->s == '\r'))
		r->s++;
}

static bool
take(struct reader *r, char c)
{
	blank(r);
	if (r->s == r->end || *r->s != c)
		return false;
	r->s++;
	return true;
}

/* Four hexadecimal digits, -1 if there are none. */
static int
hex4(const struct reader *r)
{
	int x = 0;

	if (r->end - r->s < 4)
		return -1;
	for (int k = 0; k < 4; k++) {
		char c = r->s[k];
		int d = c >= '0' && c <= '9' ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		x = 16 * x + d;
	}
	return x;
}

static char *
put_utf8(char *o, int c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 63));
	} else {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 63));
		*o++ = (char)(0x80 | (c & 63));
	}
	return o;
}

/* A string, decoded; NULL if there is none. */
static const char *
string(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *begin;
	char *out, *o;

	if (!take(r, '"'))
		return NULL;
	begin = r->s;
	while (r->s < r->end && *r->s != '"')
		r->s += *r->s == '\\' ? 2 : 1;
	if (r->s >= r->end)
		return NULL;
	out = o = arena_alloc(r->arena, (size_t)(r->s - begin) + 1);
	for (r->s = begin; *r->s != '"';) {
		const char *esc;
		int c = *r->s++;

		if (c != '\\') {
			*o++ = (char)c;
			continue;
		}
		c = *r->s++;
		esc = strchr(from, c);
		if (c == 'u') {
			c = hex4(r);
			if (c <= 0)
				return NULL;
			r->s += 4;
			/* halves of pairs are of no use in a name */
			o = put_utf8(o, c >= 0xd800 && c < 0xe000 ? '?' : c);
		} else if (esc && c) {
			*o++ = to[esc - from];
		} else {
			return NULL;
		}
	}
	r->s++;
	return out;
}

static bool
number(struct reader *r, double *x)
{
	char buf[64];
	size_t n;
	char *end;

	blank(r);
	for (n = 0; r->s + n < r->end && n < sizeof buf - 1
	     && strchr("+-.0123456789eE", r->s[n]) && r->s[n]; n++)
		buf[n] = r->s[n];
	buf[n] = 0;
	if (n == 0 || (buf[0] != '-' && (buf[0] < '0' || buf[0] > '9')))
		return false;
	*x = strtod(buf, &end);
	r->s += n;
	return !*end && isfinite(*x);
}

static bool
whole(struct reader *r, int64_t *x)
{
	char *end;

	blank(r);
	if (r->s == r->end || *r->s < '0' || *r->s > '9')
		return false;
	errno = 0;
	*x = strtoll(r->s, &end, 10);
	if (errno || end > r->end)
		return false;
	r->s = end;
	return end == r->end || !strchr(".eE", *end);
}

static bool
word(struct reader *r, const char *w)
{
	size_t n = strlen(w);

	blank(r);
	if ((size_t)(r->end - r->s) < n || memcmp(r->s, w, n) != 0)
		return false;
	r->s += n;
	return true;
}

static bool
skip(struct reader *r, int depth)
{
	double x;
	char open;

	blank(r);
	if (r->s == r->end || depth > DEPTH_MAX)
		return false;
	open = *r->s;
	if (open == '"')
		return string(r) != NULL;
	if (open != '{' && open != '[')
		return word(r, "true") || word(r, "false") || word(r, "null")
			|| number(r, &x);
	r->s++;
	if (take(r, open == '{' ? '}' : ']'))
		return true;
	do {
		if (open == '{' && (!string(r) || !take(r, ':')))
			return false;
		if (!skip(r, depth + 1))
			return false;
	} while (take(r, ','));
	return take(r, open == '{' ? '}' : ']');
}

typedef bool Member(struct reader *, const char *key, void *);

/* Each member of an object; the member function takes the value. */
static bool
object(struct reader *r, Member *member, void *data)
{
	if (!take(r, '{'))
		return false;
	if (take(r, '}'))
		return true;
	do {
		const char *key = string(r);

		if (!key || !take(r, ':') || !member(r, key, data))
			return false;
	} while (take(r, ','));
	return take(r, '}');
}

struct node {
	int64_t id, ram;
	double cpu;
	bool backward;
	const char *name;
};

static bool
node_member(struct reader *r, const char *key, void *data)
{
	struct node *n = data;

	if (!strcmp(key, "id"))
		return whole(r, &n->id);
	if (!strcmp(key, "cost_ram"))
		return whole(r, &n->ram);
	if (!strcmp(key, "cost_cpu"))
		return number(r, &n->cpu) && n->cpu >= 0;
	if (!strcmp(key, "backward")) {
		n->backward = word(r, "true");
		return n->backward || word(r, "false") || word(r, "null")
			|| skip(r, 0);
	}
	if (!strcmp(key, "name") && take(r, '"')) {
		r->s--;
		n->name = string(r);
		return n->name != NULL;
	}
	return skip(r, 0);
}

static bool
read_node(struct reader *r, const char *begin)
{
	struct node n = { -1, -1, -1, false, NULL };
	struct dag *g = r->g;
	size_t at = (size_t)g->n, need = at + 1;

	if (!object(r, node_member, &n))
		return fail(r, begin, "expected a node with id, cost_ram (whole"
			" bytes) and cost_cpu (>= 0)");
	if (n.id != g->n)
		return fail(r, begin, "the ids of the nodes must be 0..n-1 in "
			"order");
	if (n.ram < 0 || n.cpu < 0)
		return fail(r, begin, "a node lacks cost_ram or cost_cpu");
	if (g->n >= NODES_MAX)
		return fail(r, begin, "too many nodes");
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
link_member(struct reader *r, const char *key, void *data)
{
	int64_t *end = data;

	if (!strcmp(key, "source"))
		return whole(r, &end[0]);
	if (!strcmp(key, "target"))
		return whole(r, &end[1]);
	return skip(r, 0);
}

static bool
read_link(struct reader *r, const char *begin)
{
	int64_t end[2] = { -1, -1 };

	if (!object(r, link_member, end))
		return fail(r, begin, "expected a link with source and target");
	if (end[0] < 0 || end[0] >= end[1] || end[1] >= NODES_MAX)
		return fail(r, begin, "a link must lead to a later node");
	if (r->nlink >= LINKS_MAX)
		return fail(r, begin, "too many links");
	r->link = arena_grow(r->arena, r->link, 2 * (size_t)r->nlink,
	                     &r->link_cap, 2 * (size_t)r->nlink + 2,
	                     sizeof *r->link);
	r->link[2 * r->nlink] = (int32_t)end[0];
	r->link[2 * r->nlink + 1] = (int32_t)end[1];
	r->nlink++;
	return true;
}

static bool
list(struct reader *r, const char *begin,
     bool element(struct reader *, const char *))
{
	if (!take(r, '['))
		return fail(r, begin, "expected a list");
	if (take(r, ']'))
		return true;
	do {
		if (!element(r, begin))
			return false;
	} while (take(r, ','));
	return take(r, ']') || fail(r, begin, "expected ',' or ']'");
}

static bool
top_member(struct reader *r, const char *key, void *data)
{
	const char *begin = data;

	if (!strcmp(key, "nodes"))
		return list(r, begin, read_node);
	if (!strcmp(key, "links"))
		return list(r, begin, read_link);
	return skip(r, 0);
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
check_links(struct reader *r)
{
	int32_t n = 0;

	for (int32_t k = 0; k < r->nlink; k++)
		if (r->link[2 * k + 1] >= r->g->n)
			return diag_error(r->diag, "a link leads to node %d of "
			                  "%d", (int)r->link[2 * k + 1],
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
	struct reader r = { .g = g, .arena = arena, .diag = diag };
	int64_t sum = 0;
	char *begin = arena_alloc(arena, n + 1);

	memset(g, 0, sizeof *g);
	memcpy(begin, text, n);         /* ends with 0 */
	r.s = begin;
	r.end = begin + n;
	if (!object(&r, top_member, begin))
		return fail(&r, begin, "not JSON");
	if (g->n == 0)
		return diag_error(diag, "expected a list \"nodes\" that is not "
		                  "empty");
	for (int32_t i = 0; i < g->n; i++)
		if (__builtin_add_overflow(sum, g->ram[i], &sum)
		    || sum > INT64_MAX / 4)
			return diag_error(diag, "the bytes of all nodes add up "
			                  "to more than 2^61");
	if (!check_links(&r))
		return false;
	dag_finish(g, r.link, r.nlink, arena);
	return true;
}
