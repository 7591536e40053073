/* The textual form of a graph: reading.  ir/text.c describes the form.
 *
 * A recursive descent over tokens; a fault ends its line and reading goes on
 * with the next, so that several are reported.  Values may be mentioned in
 * marks before they are declared (`of`, `in`), never as operands.  Shapes are
 * inferred node by node, so that text may leave types of results out.
 */
#include "ir/ir.h"

#include "ir/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FAULTS_MAX = 20,
	CONTENTS_MAX = 1 << 28,         /* bytes that `splat` may ask for */
	ARG_MAX = 1 << 20,
};

enum token { T_END, T_LINE, T_WORD, T_STRING, T_VAL, T_AT, T_SIGN, T_BAD };

/* A mention of a value, looked up when the whole text is read. */
struct mention {
	ValId val;                      /* whose field, or */
	NodeId node;                    /* whose `of` */
	enum { M_OF, M_PARAM, M_ADJOINT, M_IN, M_AGAIN, M_LOSS } field;
	const char *name;
	int line;
};

struct parser {
	Graph *g;
	Diag *d;
	Arena *tmp;
	const char *path, *at, *end;
	int line, faults;
	enum token tok;
	char *text;                     /* of word, string, value, @name */
	char sign;
	ValId fresh;                    /* values from here on are not written
	                                 * yet */
	bool in_body;
	uint32_t *origin;               /* a hash table of indices */
	uint32_t norigin;               /* its slots, 0 or a power of 2 */
	struct mention *mention;
	size_t nmention, mention_cap;
};

static bool
fault_at(struct parser *p, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void
locate(struct parser *p, int line)
{
	diag_file(p->d, arena_printf(p->tmp, "%s:%d", p->path, line));
}

static bool
fault_at(struct parser *p, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	locate(p, line);
	p->faults++;
	return diag_error(p->d, "%s", text);
}

#define fault(p, ...) fault_at(p, (p)->line, __VA_ARGS__)

/* ---- tokens ---- */

static bool
is_word(char c)
{
	return c && strchr(TEXT_WORD, c);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of a string, p->at behind its backslash; 0: bad. */
static char
escaped(struct parser *p)
{
	char c;

	if (p->at == p->end || *p->at == '\n')
		return 0;
	c = *p->at++;
	if (c == 'x' && p->end - p->at >= 2) {
		int high = hex_digit(p->at[0]), low = hex_digit(p->at[1]);

		p->at += 2;
		return high < 0 || low < 0 ? 0 : (char)(high << 4 | low);
	}
	if (c == 'n')
		return '\n';
	if (c == 't')
		return '\t';
	return c == '"' || c == '\\' ? c : 0;
}

/* The string that starts at p->at, behind its quote; it ends on its line. */
static enum token
read_string(struct parser *p, enum token tok)
{
	size_t n = 0;
	const char *close = p->at;

	while (close < p->end && *close != '"' && *close != '\n')
		close += *close == '\\' && p->end - close > 1 ? 2 : 1;
	p->text = arena_alloc(p->tmp, (size_t)(close - p->at) + 1);
	while (p->at < p->end && *p->at != '"') {
		char c = *p->at;

		if (c == '\n')
			return T_BAD;
		p->at++;
		if (c == '\\')
			c = escaped(p);
		if (!c)
			return T_BAD;
		p->text[n++] = c;
	}
	if (p->at == p->end)
		return T_BAD;
	p->at++;
	return tok;
}

static enum token
read_word(struct parser *p, enum token tok)
{
	const char *start = p->at;
	size_t n;

	if (tok != T_WORD && p->at < p->end && *p->at == '"') {
		p->at++;
		return read_string(p, tok);
	}
	while (p->at < p->end && is_word(*p->at))
		p->at++;
	n = (size_t)(p->at - start);
	p->text = arena_alloc(p->tmp, n + 1);
	memcpy(p->text, start, n);
	return n ? tok : T_BAD;
}

static void
advance(struct parser *p)
{
	/* the line of a line's end is the line that it ends */
	if (p->tok == T_LINE)
		p->line++;
	while (p->at < p->end && strchr(" \t\r", *p->at) && *p->at)
		p->at++;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
	p->text = NULL;
	p->sign = 0;
	if (p->at == p->end) {
		p->tok = T_END;
		return;
	}
	char c = *p->at;

	if (is_word(c)) {
		p->tok = read_word(p, T_WORD);
		return;
	}
	p->at++;
	if (c == '\n') {
		p->tok = T_LINE;
	} else if (c == '"') {
		p->tok = read_string(p, T_STRING);
	} else if (c == '%' || c == '@') {
		p->tok = read_word(p, c == '%' ? T_VAL : T_AT);
	} else {
		p->sign = c;
		p->tok = c && strchr("{}[](),:;=?*", c) ? T_SIGN : T_BAD;
	}
}

static bool
is_sign(const struct parser *p, char c)
{
	return p->tok == T_SIGN && p->sign == c;
}

static bool
is_kw(const struct parser *p, const char *word)
{
	return p->tok == T_WORD && strcmp(p->text, word) == 0;
}

static bool
accept(struct parser *p, char c)
{
	if (!is_sign(p, c))
		return false;
	advance(p);
	return true;
}

static bool
accept_kw(struct parser *p, const char *word)
{
	if (!is_kw(p, word))
		return false;
	advance(p);
	return true;
}

/* Report that something else was expected here. */
static bool
expected(struct parser *p, const char *what)
{
	switch (p->tok) {
	case T_END:  return fault(p, "expected %s, found the end", what);
	case T_LINE: return fault(p, "expected %s, found end of line", what);
	case T_SIGN: return fault(p, "expected %s, found '%c'", what, p->sign);
	case T_BAD:
		if (p->sign)
			return fault(p, "expected %s, found byte 0x%02x", what,
			             (unsigned char)p->sign);
		return fault(p, "expected %s, found a bad name or string",
		             what);
	default:
		return fault(p, "expected %s, found '%s'", what, p->text);
	}
}

static bool
expect(struct parser *p, char c)
{
	char what[4] = { '\'', c, '\'', 0 };

	return accept(p, c) || expected(p, what);
}

static bool
expect_text(struct parser *p, enum token tok, const char *what, char **text)
{
	*text = p->text;
	if (p->tok != tok)
		return expected(p, what);
	advance(p);
	return true;
}

static void
skip_lines(struct parser *p)
{
	while (p->tok == T_LINE)
		advance(p);
}

static bool
word_int(const char *s, int64_t *x)
{
	char *rest;

	errno = 0;
	*x = strtoll(s, &rest, 10);
	return *s && !*rest && !errno && *s != '+';
}

static bool
read_int(struct parser *p, int64_t low, const char *what, int64_t *x)
{
	if (p->tok != T_WORD || !word_int(p->text, x))
		return expected(p, what);
	if (*x < low)
		return fault(p, "%s: %lld is too small", what, (long long)*x);
	advance(p);
	return true;
}

/* [1,2,3] */
static bool
read_list(struct parser *p, int64_t low, IntList *l)
{
	l->n = 0;
	if (!expect(p, '['))
		return false;
	while (!is_sign(p, ']')) {
		if (l->n == MAX_RANK)
			return fault(p, "more than %d numbers", MAX_RANK);
		if ((l->n && !expect(p, ','))
		    || !read_int(p, low, "a number", &l->v[l->n]))
			return false;
		l->n++;
	}
	return expect(p, ']');
}

/* ---- values ---- */

static DType
find_type(const char *text)
{
	for (int i = DT_NONE + 1; i < DT_COUNT; i++)
		if (strcmp(dtype_info[i].text, text) == 0)
			return (DType)i;
	return DT_NONE;
}

static bool
read_dtype(struct parser *p, DType *dt)
{
	*dt = DT_NONE;
	if (accept(p, '?'))
		return true;
	if (p->tok == T_WORD)
		*dt = find_type(p->text);
	if (*dt == DT_NONE)
		return expected(p, "an element type");
	advance(p);
	return true;
}

static bool
read_extent(struct parser *p, Val *v, int i)
{
	v->shape.dim[i] = -1;
	if (accept(p, '?'))
		return true;
	if (p->tok == T_WORD && strchr("0123456789+-.", *p->text))
		return read_int(p, 0, "an extent", &v->shape.dim[i]);
	if (p->tok != T_WORD && p->tok != T_STRING)
		return expected(p, "an extent");
	v->dim_name[i] = arena_str(p->g->arena, p->text);
	advance(p);
	return !accept(p, '=')
	       || read_int(p, 0, "an extent", &v->shape.dim[i]);
}

static bool
read_type(struct parser *p, Val *v)
{
	if (!read_dtype(p, &v->dt))
		return false;
	if (!accept(p, '['))
		return true;
	if (accept(p, '*'))
		return expect(p, ']');
	v->shape.rank = 0;
	while (!is_sign(p, ']')) {
		if (v->shape.rank == MAX_RANK)
			return fault(p, "rank above %d", MAX_RANK);
		if ((v->shape.rank && !expect(p, ','))
		    || !read_extent(p, v, v->shape.rank))
			return false;
		v->shape.rank++;
	}
	return expect(p, ']');
}

/* The value named next, to be put into a field in the end. */
static bool
read_mention(struct parser *p, ValId v, NodeId node, int field)
{
	struct mention m = { v, node, field, NULL, p->line };
	char *name;

	if (!expect_text(p, T_VAL, "a value", &name))
		return false;
	m.name = name;
	p->mention = arena_grow(p->tmp, p->mention, p->nmention,
	                        &p->mention_cap, p->nmention + 1,
	                        sizeof *p->mention);
	p->mention[p->nmention++] = m;
	return true;
}

static bool
read_split(struct parser *p, Split *s)
{
	int64_t axis;

	if (accept_kw(p, "partial")) {
		*s = (Split){ SPLIT_PARTIAL, 0 };
		return true;
	}
	if (!read_int(p, 0, "an axis", &axis))
		return false;
	if (axis >= MAX_RANK)
		return fault(p, "axis %lld", (long long)axis);
	*s = (Split){ SPLIT_AXIS, (int)axis };
	return true;
}

static bool
read_onnx(struct parser *p, Val *v)
{
	v->onnx = v->name;
	if (p->tok == T_STRING) {
		v->onnx = arena_str(p->g->arena, p->text);
		advance(p);
	}
	return true;
}

static bool
read_state(struct parser *p, Val *v)
{
	if (p->tok != T_WORD && p->tok != T_STRING)
		return expected(p, "a state's name");
	v->state = arena_str(p->g->arena, p->text);
	advance(p);
	return true;
}

static bool
read_strides(struct parser *p, Val *v)
{
	IntList l;

	if (!read_list(p, INT64_MIN, &l))
		return false;
	v->laid_out = true;
	for (int i = 0; i < l.n; i++)
		v->stride[i] = l.v[i];
	return true;
}

static bool
read_flag(struct parser *p, const char *word, bool *flag)
{
	if (!accept_kw(p, word))
		return false;
	*flag = true;
	return true;
}

/* All marks of value id.  No value is added meanwhile. */
static bool
read_marks(struct parser *p, ValId id)
{
	Val *v = &p->g->val[id];
	bool strided = false;

	for (;;) {
		bool ok = true;

		if (read_flag(p, "output", &v->output)
		    || read_flag(p, "frozen", &v->frozen)
		    || read_flag(p, "resident", &v->resident))
			continue;
		if (accept_kw(p, "onnx")) {
			ok = read_onnx(p, v);
		} else if (accept_kw(p, "of")) {
			ok = read_mention(p, id, 0, M_OF);
		} else if (accept_kw(p, "param")) {
			ok = read_mention(p, id, 0, M_PARAM);
		} else if (accept_kw(p, "adjoint")) {
			ok = read_mention(p, id, 0, M_ADJOINT);
		} else if (accept_kw(p, "state")) {
			ok = read_state(p, v);
		} else if (accept_kw(p, "split")) {
			ok = read_split(p, &v->split);
		} else if (accept_kw(p, "strides")) {
			ok = read_strides(p, v);
			strided = true;
		} else if (accept_kw(p, "start")) {
			ok = read_int(p, INT64_MIN, "a start", &v->start);
		} else if (accept_kw(p, "in")) {
			v->laid_out = true;
			ok = read_mention(p, id, 0, M_IN);
		} else if (accept_kw(p, "bytes")) {
			v->laid_out = true;
			ok = read_int(p, 0, "bytes", &v->nbytes);
		} else if (accept_kw(p, "at")) {
			ok = read_int(p, 0, "an offset", &v->offset);
		} else {
			break;
		}
		if (!ok)
			return false;
	}
	if (v->laid_out && !strided) {
		if (!shape_known(&v->shape))
			return fault(p, "a layout needs a type or strides");
		shape_strides(&v->shape, v->stride);
	}
	return true;
}

/* NAME [: TYPE] MARKS */
static ValId
read_decl(struct parser *p, ValKind kind)
{
	char *name;
	ValId v;

	if (!expect_text(p, T_VAL, "a value", &name))
		return 0;
	if (!*name || val_find(p->g, name)) {
		fault(p, *name ? "'%s' is declared twice" : "no name%s", name);
		return 0;
	}
	v = val_new(p->g, kind, name, DT_NONE, (Shape){ .rank = -1 });
	if ((accept(p, ':') && !read_type(p, &p->g->val[v]))
	    || !read_marks(p, v))
		return 0;
	return v;
}

/* ---- contents ---- */

static bool
store_float(const char *word, DType dt, unsigned char *to)
{
	char *rest;
	double x = strtod(word, &rest);
	float f = (float)x;
	uint16_t h = dt == DT_F16 ? float_to_half(f) : float_to_bf16(f);

	if (!*word || *rest)
		return false;
	if (dt == DT_F64)
		memcpy(to, &x, sizeof x);
	else if (dt == DT_F32)
		memcpy(to, &f, sizeof f);
	else
		memcpy(to, &h, sizeof h);
	return true;
}

static bool
store_int(const char *word, DType dt, unsigned char *to)
{
	int bits = 8 * dtype_info[dt].nbytes;
	bool is_signed = dtype_info[dt].cls == 'i';
	uint64_t u;
	char *rest;

	errno = 0;
	if (is_signed) {
		int64_t i = strtoll(word, &rest, 10);

		if (bits < 64 && (i < -(INT64_C(1) << (bits - 1))
		                  || i >= INT64_C(1) << (bits - 1)))
			return false;
		u = (uint64_t)i;
	} else {
		u = strtoull(word, &rest, 10);
		if (*word == '-' || (bits < 64 && u >> bits)
		    || (dt == DT_BOOL && u > 1))
			return false;
	}
	if (!*word || *rest || errno)
		return false;
	/* little-endian hosts only, as everywhere in ckc */
	memcpy(to, &u, (size_t)bits / 8);
	return true;
}

static bool
read_element(struct parser *p, DType dt, unsigned char *to)
{
	bool ok = p->tok == T_WORD;

	if (ok && dtype_info[dt].cls == 'f')
		ok = store_float(p->text, dt, to);
	else if (ok)
		ok = store_int(p->text, dt, to);
	if (!ok) {
		char what[32];

		snprintf(what, sizeof what, "a number of type %s",
		         dtype_info[dt].text);
		return expected(p, what);
	}
	advance(p);
	return true;
}

static bool
read_elements(struct parser *p, Val *v, int64_t n)
{
	size_t size = (size_t)dtype_info[v->dt].nbytes;
	unsigned char *data;
	int64_t i = 0;

	/* an element takes two bytes of text at least */
	if (n > p->end - p->at)
		return fault(p, "expected %lld elements", (long long)n);
	data = arena_array(p->g->arena, (size_t)n + 1, size);
	skip_lines(p);
	while (!is_sign(p, '}')) {
		if (i && !expect(p, ','))
			return false;
		skip_lines(p);
		if (i == n)
			return fault(p, "more than %lld elements",
			             (long long)n);
		if (!read_element(p, v->dt, data + (size_t)i * size))
			return false;
		skip_lines(p);
		i++;
	}
	if (i != n)
		return fault(p, "expected %lld elements, found %lld",
		             (long long)n, (long long)i);
	v->data = data;
	return expect(p, '}');
}

static bool
read_hex(struct parser *p, Val *v, int64_t nbytes)
{
	unsigned char *data;

	if (p->tok != T_STRING)
		return expected(p, "bytes in hexadecimal");
	if (nbytes > CONTENTS_MAX || strlen(p->text) != 2 * (size_t)nbytes)
		return fault(p, "expected %lld bytes", (long long)nbytes);
	data = arena_alloc(p->g->arena, (size_t)nbytes + 1);
	for (int64_t i = 0; i < nbytes; i++) {
		int high = hex_digit(p->text[2 * i]);
		int low = hex_digit(p->text[2 * i + 1]);

		if (high < 0 || low < 0)
			return fault(p, "not hexadecimal");
		data[i] = (unsigned char)(high << 4 | low);
	}
	v->data = data;
	advance(p);
	return true;
}

static bool
read_splat(struct parser *p, Val *v, int64_t nbytes)
{
	size_t size = (size_t)dtype_info[v->dt].nbytes;
	unsigned char one[8], *data;

	if (nbytes > CONTENTS_MAX)
		return fault(p, "contents of %lld bytes", (long long)nbytes);
	if (!read_element(p, v->dt, one))
		return false;
	data = arena_alloc(p->g->arena, (size_t)nbytes + 1);
	for (size_t i = 0; i < (size_t)nbytes; i += size)
		memcpy(data + i, one, size);
	v->data = data;
	return true;
}

static bool
read_contents(struct parser *p, Val *v)
{
	int64_t nbytes = val_data_bytes(v);

	if (accept_kw(p, "..."))
		return true;
	if (nbytes < 0)
		return fault(p, "contents of unknown size");
	if (accept(p, '{'))
		return read_elements(p, v, val_nelem(v));
	if (accept_kw(p, "splat"))
		return read_splat(p, v, nbytes);
	if (accept_kw(p, "hex"))
		return read_hex(p, v, nbytes);
	return expected(p, "{, splat, hex or ...");
}

/* ---- nodes ---- */

static bool
read_op(struct parser *p, Op *op)
{
	if (p->tok != T_WORD)
		return expected(p, "an op");
	*op = op_find(p->text);
	if (*op == OP_NONE)
		return fault(p, "there is no op '%s'", p->text);
	advance(p);
	return true;
}

static bool
read_attr_value(struct parser *p, const struct attr_info *a, void *to)
{
	char *rest;
	double x;

	if (a->type == AT_LIST)
		return read_list(p, INT64_MIN, to);
	if (a->type == AT_INT) {
		if (p->tok == T_WORD && find_type(p->text)) {
			*(int64_t *)to = find_type(p->text);
			advance(p);
			return true;
		}
		return read_int(p, INT64_MIN, "an integer", to);
	}
	if (p->tok != T_WORD)
		return expected(p, "a number");
	x = strtod(p->text, &rest);
	if (*rest)
		return expected(p, "a number");
	memcpy(to, &x, sizeof x);
	advance(p);
	return true;
}

/* {name=value, ...}, which may be absent. */
static bool
read_attrs(struct parser *p, Op op, Attr *attr)
{
	int n;
	const struct attr_info *a = op_attrs(op, &n);

	if (!accept(p, '{'))
		return true;
	for (bool first = true; !is_sign(p, '}'); first = false) {
		int i = 0;

		if (!first && !expect(p, ','))
			return false;
		if (p->tok != T_WORD)
			return expected(p, "an attribute");
		while (i < n && strcmp(a[i].name, p->text) != 0)
			i++;
		if (i == n)
			return fault(p, "%s has no attribute '%s'",
			             op_info[op].text, p->text);
		advance(p);
		if (!expect(p, '=')
		    || !read_attr_value(p, &a[i], (char *)attr + a[i].offset))
			return false;
	}
	return expect(p, '}');
}

/* What is read of a node before it is appended. */
struct draft {
	Node n;
	size_t in_cap, out_cap, origin_cap, inlined_cap;
	size_t again;                   /* mention that is this node's, + 1 */
	int line;
};

static void
push(struct parser *p, ValId **list, int *n, size_t *cap, ValId v)
{
	*list = arena_grow(p->g->arena, *list, (size_t)*n, cap,
	                   (size_t)*n + 1, sizeof **list);
	(*list)[(*n)++] = v;
}

static bool
read_outputs(struct parser *p, struct draft *t)
{
	do {
		ValId v = 0;

		if (!accept_kw(p, "_")) {
			v = read_decl(p, V_TEMP);
			if (!v)
				return false;
		}
		push(p, &t->n.out, &t->n.nout, &t->out_cap, v);
	} while (accept(p, ','));
	return expect(p, '=');
}

static bool
read_operand(struct parser *p, struct draft *t)
{
	ValId v = 0;

	if (!accept_kw(p, "_")) {
		if (p->tok != T_VAL)
			return expected(p, "a value");
		v = val_find(p->g, p->text);
		if (!v || v >= p->fresh)
			return fault(p, "'%s' is not defined here", p->text);
		advance(p);
	}
	push(p, &t->n.in, &t->n.nin, &t->in_cap, v);
	return true;
}

static bool
read_operands(struct parser *p, struct draft *t)
{
	if (p->tok != T_VAL && !is_kw(p, "_"))
		return true;
	do {
		if (!read_operand(p, t))
			return false;
	} while (accept(p, ','));
	return true;
}

/* The slot of an origin in the table, or the free one where it belongs. */
static uint32_t *
origin_slot(struct parser *p, const char *name, const char *op)
{
	const struct origin *o = p->g->origin;
	uint64_t h = 0xcbf29ce484222325u;       /* FNV-1a */
	uint32_t i;

	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (const char *s = op; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	i = (uint32_t)(h ^ h >> 32) & (p->norigin - 1);
	while (p->origin[i] && (strcmp(o[p->origin[i]].name, name) != 0
	                        || strcmp(o[p->origin[i]].op, op) != 0))
		i = (i + 1) & (p->norigin - 1);
	return &p->origin[i];
}

static uint32_t
intern_origin(struct parser *p, const char *name, const char *op)
{
	Graph *g = p->g;
	uint32_t *slot;

	if (2 * (uint64_t)g->norigin >= p->norigin) {
		p->norigin = p->norigin ? 2 * p->norigin : 256;
		p->origin = arena_array(p->tmp, p->norigin,
		                        sizeof *p->origin);
		for (uint32_t i = 1; i < g->norigin; i++)
			*origin_slot(p, g->origin[i].name, g->origin[i].op) =
				i;
	}
	slot = origin_slot(p, name, op);
	if (!*slot)
		*slot = origin_new(g, name, op);
	return *slot;
}

static bool
read_origins(struct parser *p, Node *n)
{
	do {
		char *name;
		uint32_t o;

		if (!expect_text(p, T_STRING, "an origin's name", &name))
			return false;
		if (p->tok != T_WORD && p->tok != T_STRING)
			return expected(p, "an origin's op");
		o = intern_origin(p, name, p->text);
		advance(p);
		node_add_origin(p->g, n, &o, 1);
	} while (accept(p, ','));
	return true;
}

/* a3 or t3 */
static bool
read_arg(struct parser *p, const char *letters, int *arg)
{
	int64_t i;

	if (p->tok != T_WORD || !*p->text || !strchr(letters, *p->text)
	    || !word_int(p->text + 1, &i) || i < 0 || i > ARG_MAX)
		return expected(p, strchr(letters, 'a') ? "aN or tN" : "tN");
	*arg = *p->text == 't' ? ~(int)i : (int)i;
	advance(p);
	return true;
}

static bool
read_micro(struct parser *p, struct body *b, size_t *cap)
{
	struct micro m = { .dt = DT_NONE };
	int number;

	if (!read_arg(p, "t", &number))
		return false;
	if (~number != b->nmicro)
		return fault(p, "expected t%d, found t%d", b->nmicro, ~number);
	if ((accept(p, ':') && !read_dtype(p, &m.dt)) || !expect(p, '=')
	    || !read_op(p, &m.op))
		return false;
	m.attr = attr_default(m.op);
	while (p->tok == T_WORD) {
		if (m.narg == 3)
			return fault(p, "more than 3 operands");
		if (!read_arg(p, "at", &m.arg[m.narg]))
			return false;
		m.narg++;
		if (!accept(p, ','))
			break;
	}
	if (!read_attrs(p, m.op, &m.attr))
		return false;
	b->micro = arena_grow(p->g->arena, b->micro, (size_t)b->nmicro, cap,
	                      (size_t)b->nmicro + 1, sizeof *b->micro);
	b->micro[b->nmicro++] = m;
	return true;
}

static bool
read_give(struct parser *p, Node *n)
{
	n->body->result = arena_array(p->g->arena, (size_t)n->nout + 1,
	                              sizeof *n->body->result);
	for (int i = 0; i < n->nout; i++) {
		int arg;

		if ((i && !expect(p, ',')) || !read_arg(p, "t", &arg))
			return false;
		n->body->result[i] = ~arg;
	}
	return true;
}

/* [t0 = OP ARGS; ... give t0], separated by ; or line ends. */
static bool
read_body(struct parser *p, Node *n)
{
	size_t cap = 0;

	if (n->op != OP_LOOP || n->body)
		return fault(p, "only a loop has a body, and only one");
	n->body = arena_alloc(p->g->arena, sizeof *n->body);
	for (;;) {
		while (p->tok == T_LINE || is_sign(p, ';'))
			advance(p);
		if (accept_kw(p, "give")) {
			if (!read_give(p, n))
				return false;
			break;
		}
		if (!read_micro(p, n->body, &cap))
			return false;
		if (p->tok != T_LINE && !is_sign(p, ';'))
			return expected(p, "end of line");
	}
	skip_lines(p);
	return expect(p, ']');
}

static bool
read_phase(struct parser *p, Phase *phase)
{
	for (int i = 0; i < PH_COUNT; i++)
		if (strcmp(p->text, text_phase[i]) == 0) {
			*phase = (Phase)i;
			advance(p);
			return true;
		}
	return fault(p, "there is no phase '%s'", p->text);
}

/* Nodes by one of their outputs. */
static bool
read_inlined(struct parser *p, struct draft *t)
{
	const Graph *g = p->g;
	Node *n = &t->n;

	do {
		char *name;
		NodeId def;

		if (!expect_text(p, T_VAL, "a value", &name))
			return false;
		def = g->val[val_find(g, name)].def;
		if (!def || g->node[def].op != OP_LOOP)
			return fault(p, "no loop before writes '%s'", name);
		n->inlined = arena_grow(g->arena, n->inlined,
			(size_t)n->ninlined, &t->inlined_cap,
			(size_t)n->ninlined + 1, sizeof *n->inlined);
		n->inlined[n->ninlined++] = def;
	} while (accept(p, ','));
	return true;
}

static bool
read_tail(struct parser *p, struct draft *t)
{
	Node *n = &t->n;
	bool ok = true;

	while (ok) {
		int64_t x;

		if (p->tok == T_AT) {
			ok = read_phase(p, &n->phase);
		} else if (accept_kw(p, "again")) {
			ok = read_mention(p, 0, 0, M_AGAIN);
			t->again = p->nmention;
		} else if (accept_kw(p, "inlines")) {
			ok = read_inlined(p, t);
		} else if (accept_kw(p, "stream")) {
			ok = read_int(p, 0, "a stream", &x);
			if (ok && x > ARG_MAX)
				ok = fault(p, "stream %lld", (long long)x);
			n->stream = ok ? (int)x : 0;
		} else if (accept_kw(p, "workspace")) {
			ok = read_int(p, 0, "bytes", &n->workspace)
			     && (!accept_kw(p, "at")
			         || read_int(p, 0, "an offset",
			                     &n->workspace_at));
		} else if (accept_kw(p, "from")) {
			ok = read_origins(p, n);
		} else if (accept(p, '[')) {
			p->in_body = true;
			ok = read_body(p, n);
			p->in_body = !ok;
		} else {
			break;
		}
	}
	return ok;
}

static bool
check_draft(struct parser *p, struct draft *t)
{
	Node *n = &t->n;
	int want = op_info[n->op].nout;

	if (n->op == OP_LOOP && !n->body)
		return fault_at(p, t->line, "a loop needs a body");
	if (want == VARIADIC)
		return true;
	if (n->nout > want)
		return fault_at(p, t->line, "%s has %d outputs, found %d",
		                op_info[n->op].text, want, n->nout);
	while (n->nout < want)
		push(p, &n->out, &n->nout, &t->out_cap, 0);
	return true;
}

/* Append the node; node_new would name outputs itself. */
static bool
append(struct parser *p, struct draft *t)
{
	Graph *g = p->g;
	Node *n;

	g->node = arena_grow(g->arena, g->node, g->nnode, &g->node_cap,
	                     g->nnode + 1, sizeof *g->node);
	n = &g->node[g->nnode++];
	*n = t->n;
	if (!n->in)
		n->in = arena_array(g->arena, 1, sizeof *n->in);
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			g->val[n->out[i]].def = node_id(g, n);
			g->val[n->out[i]].slot = i;
		}
	if (t->again)
		p->mention[t->again - 1].node = node_id(g, n);
	locate(p, t->line);
	if (shape_infer(g, p->d, n))
		return true;
	p->faults++;
	return false;
}

static bool
read_node(struct parser *p)
{
	struct draft t = { .line = p->line };

	p->fresh = p->g->nval;
	if (!read_outputs(p, &t) || !read_op(p, &t.n.op))
		return false;
	t.n.attr = attr_default(t.n.op);
	t.n.workspace_at = -1;
	return read_operands(p, &t) && read_attrs(p, t.n.op, &t.n.attr)
	       && read_tail(p, &t) && check_draft(p, &t) && append(p, &t);
}

/* ---- statements ---- */

static bool
read_props(struct parser *p)
{
	while (p->tok == T_WORD) {
		int i = 0;

		while (text_prop[i] && strcmp(text_prop[i], p->text) != 0)
			i++;
		if (!text_prop[i])
			return fault(p, "there is no property '%s'", p->text);
		p->g->props |= 1u << i;
		advance(p);
	}
	return true;
}

static bool
read_value(struct parser *p, ValKind kind)
{
	ValId v = read_decl(p, kind);

	if (!v)
		return false;
	return !accept(p, '=') || read_contents(p, &p->g->val[v]);
}

static bool
read_statement(struct parser *p)
{
	if (p->tok == T_VAL || is_kw(p, "_"))
		return read_node(p);
	for (int k = 0; k < V_KIND_COUNT; k++)
		if (accept_kw(p, text_kind[k]))
			return read_value(p, (ValKind)k);
	if (accept_kw(p, "loss"))
		return read_mention(p, 0, 0, M_LOSS);
	if (accept_kw(p, "props"))
		return read_props(p);
	if (accept_kw(p, "streams"))
		return read_int(p, 0, "streams", &p->g->nstream);
	return expected(p, "a statement");
}

/* Go to the end of a line that has a fault, or of the loop around it. */
static void
recover(struct parser *p)
{
	while (p->tok != T_END
	       && (p->in_body ? !is_sign(p, ']') : p->tok != T_LINE))
		advance(p);
	if (p->in_body && p->tok != T_END)
		advance(p);
	p->in_body = false;
}

static void
read_graph(struct parser *p)
{
	char *name;

	skip_lines(p);
	if (!accept_kw(p, "graph")) {
		expected(p, "graph @NAME {");
		return;
	}
	if (!expect_text(p, T_AT, "@NAME", &name) || !expect(p, '{'))
		return;
	p->g->name = arena_str(p->g->arena, name);
	for (;;) {
		skip_lines(p);
		if (is_sign(p, '}') || p->tok == T_END
		    || p->faults >= FAULTS_MAX)
			break;
		bool ok = read_statement(p);

		if (ok && p->tok != T_LINE && p->tok != T_END
		    && !is_sign(p, '}'))
			ok = expected(p, "end of line");
		if (!ok)
			recover(p);
	}
	if (p->faults)
		return;
	if (!expect(p, '}'))
		return;
	skip_lines(p);
	if (p->tok != T_END)
		expected(p, "nothing more");
}

static void
settle_mention(struct parser *p, const struct mention *m)
{
	Graph *g = p->g;
	ValId to = val_find(g, m->name);
	Val *v = &g->val[m->val];
	NodeId def = g->val[to].def;

	if (!to) {
		fault_at(p, m->line, "'%s' is not declared", m->name);
		return;
	}
	switch (m->field) {
	case M_OF:      v->of = to; break;
	case M_PARAM:   v->param = to; break;
	case M_ADJOINT: v->grad_of = to; break;
	case M_IN:      v->base = to; break;
	case M_LOSS:    g->loss = to; break;
	case M_AGAIN:
		if (!def || def >= m->node)
			fault_at(p, m->line, "no node before writes '%s'",
			         m->name);
		else
			g->node[m->node].of = def;
	}
}

Graph *
text_parse(const char *path, const char *text, size_t n, Diag *d)
{
	struct parser p = {
		.g = graph_new("?"), .d = d, .tmp = arena_new(), .path = path,
		.at = text, .end = text + n, .line = 1, .tok = T_BAD,
	};

	advance(&p);
	read_graph(&p);
	for (size_t i = 0; i < p.nmention && !p.faults; i++)
		settle_mention(&p, &p.mention[i]);
	diag_file(d, path);
	arena_free(p.tmp);
	if (!p.faults)
		return p.g;
	graph_free(p.g);
	return NULL;
}
