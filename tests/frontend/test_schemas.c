/* The importer against the operators as ONNX describes them, in all versions
 * that it claims to know:
 *
 *	test_schemas tests/onnx/schemas.txt
 *
 * A node is imported with its attributes absent, at their defaults, and
 * changed, one by one.  Every attribute is known; a default written out
 * changes nothing; what is changed changes the graph or is refused, unless it
 * stands in the list below; every input is read; every output is made.
 */
#include "frontend/import/import.h"
#include "frontend/onnx/onnx_op.h"
#include "tests/frontend/build.h"
#include "frontend/import/optable.h"
#include "ir/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_ATTR = 32, MAX_LINES = 2048, NAME = 48 };

struct attribute {
	char name[NAME], type[NAME], value[NAME];
};

struct schema {
	char domain[NAME], name[NAME];
	int version, last;              /* opsets in which it holds */
	int nin[2], nout[2];            /* least and most; -1: no end */
	int nattr;
	struct attribute attr[MAX_ATTR];
};

static int faults;

static void fault(const struct schema *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void
fault(const struct schema *s, const char *fmt, ...)
{
	va_list ap;

	printf("%s-%d: ", s->name, s->version);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	faults++;
}

/* ---- what is meant to be so ---- */

static const struct {
	const char *op, *attr, *why;    /* op "*": all */
} ignored[] = {
	{ "*", "consumed_inputs", "of opset 1, without meaning" },
	{ "*", "seed", "ckrun's seed decides" },
	{ "Attention", "q_num_heads", "dim 1 of operands of rank 4" },
	{ "Attention", "kv_num_heads", "dim 1 of operands of rank 4" },
	{ "*", "stash_type", "f32 or better is taken in any case" },
	{ "Attention", "softmax_precision", "f32 or better" },
	{ "BatchNormalization", "momentum", "of training only" },
	{ "Cast", "saturate", "of 8-bit floats only" },
	{ "Cast", "round_mode", "of 8-bit floats only" },
	{ "CastLike", "saturate", "of 8-bit floats only" },
	{ "CastLike", "round_mode", "of 8-bit floats only" },
	{ "Conv", "kernel_shape", "the weight's" },
	{ "ConvTranspose", "kernel_shape", "the weight's" },
	{ "Clip", "max", "none is infinite, not the largest number" },
	{ "Clip", "min", "none is infinite, not the largest number" },
	{ "Dropout", "ratio", "of training only" },
	{ "TopK", "sorted", "always" },
};

/* Operators that do not stand alone. */
static const char *const apart[] = {
	"ConcatFromSequence", "SequenceAt", "SequenceConstruct",
	"SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
	"SplitToSequence",
};

/* Values that an attribute may have; otherwise numbers near its default. */
static const struct {
	const char *op, *attr, *values; /* separated by blanks */
} samples[] = {
	{ "*", "blocksize", "2 3" },
	{ "*", "dilations", "2,1 1,2" },
	{ "*", "direction", "LEFT RIGHT reverse bidirectional" },
	{ "*", "dtype", "1 10 6" },
	{ "*", "hidden_size", "5" },
	{ "*", "kernel_shape", "4,5 2,2" },
	{ "*", "num_groups", "1 3" },
	{ "*", "num_outputs", "1 2" },
	{ "*", "output_datatype", "1 10" },
	{ "*", "pads", "1,1,1,1" },
	{ "*", "perm", "0,1,2,3 1,0,2,3" },
	{ "*", "shape", "2,3 4" },
	{ "*", "scales", "1,1,2,2 1,1,3,3" },
	{ "*", "size", "3 5" },
	{ "*", "spatial", "1 0" },
	{ "*", "starts", "1 0" },
	{ "*", "strides", "1,2 2,2" },
	{ "*", "to", "10 1" },
	{ "*", "axes", "1 2" },
	{ "*", "k", "1 2" },
	{ "*", "ends", "2 3" },
	{ "Einsum", "equation", "abcd->dcba abcd->ab" },
	{ "Pad", "pads", "0,0,1,1,0,0,1,1 0,0,2,2,0,0,2,2" },
	{ "Attention", "qk_matmul_output_mode", "2 3" },
	{ "Attention", "left_window_size", "0 -2" },
	{ "Attention", "right_window_size", "0 -2" },
};

static const char words[] =
	"linear cubic bilinear reflect edge wrap CRD SAME_UPPER VALID tanh "
	"add sum none floor border nearest align_corners not_larger up down "
	"Relu";

static bool
of(const char *op, const struct schema *s)
{
	return strcmp(op, "*") == 0 || strcmp(op, s->name) == 0;
}

static bool
is_ignored(const struct schema *s, const struct attribute *a)
{
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		if (of(ignored[i].op, s) && strcmp(ignored[i].attr,
		                                   a->name) == 0)
			return true;
	return false;
}

/* The most inputs or outputs to try. */
static int
most(const int span[2])
{
	return span[1] < 0 ? 3 : span[1];
}

/* ---- one import ---- */

struct answer {
	char *text, *said;              /* text NULL: refused */
	size_t ntext, nsaid;
};

static struct answer
import(const struct buf *m)
{
	static const struct import_options opt = { .all_outputs = true };
	struct answer o = { 0 };
	FILE *said = open_memstream(&o.said, &o.nsaid), *text;
	Diag *d = diag_new("ckc", said);
	struct onnx_file *file;
	int fd = memfd_create("model", 0);
	char path[32];
	Graph *g;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (write(fd, m->b, m->n) != (ssize_t)m->n)
		abort();
	g = onnx_import(path, &opt, d, &file);
	diag_flush(d);
	diag_free(d);
	fclose(said);
	if (g) {
		text = open_memstream(&o.text, &o.ntext);
		text_print(g, text);
		fclose(text);
	}
	graph_free(g);
	onnx_close(file);
	close(fd);
	return o;
}

static void
done(struct answer *o)
{
	free(o->text);
	free(o->said);
}

/* ---- nodes ---- */

static void
put_attribute(struct buf *attrs, const char *name, const char *type,
              const char *value)
{
	struct buf a = { 0 }, t;
	int64_t one = 1;
	float x = strtof(value, NULL);
	static const char *const types[] = { "", "float", "int", "string",
		"tensor", "graph", "floats", "ints", "strings" };
	int k = 1;

	while (k < 8 && strcmp(types[k], type) != 0)
		k++;
	put_str(&a, 1, name);
	put_int(&a, 20, k);
	switch (k) {
	case 1:
		put_fixed(&a, 2, x);
		break;
	case 2:
		put_int(&a, 3, atoll(value));
		break;
	case 3:
		put_str(&a, 4, strcmp(value, "\"\"") == 0 ? "" : value);
		break;
	case 4:
		t = tensor_raw("", ONNX_FLOAT, 1, &one, &x, sizeof x);
		put_msg(&a, 5, &t);
		break;
	default:
		for (const char *v = value; *v; v += strspn(v, ",")) {
			size_t n = strcspn(v, ",");

			if (k == 6)
				put_fixed(&a, 7, strtof(v, NULL));
			else if (k == 7)
				put_int(&a, 8, atoll(v));
			else
				put_bytes(&a, 9, v, n);
			v += n;
		}
	}
	put_msg(attrs, 5, &a);
}

/* "i0 i1 ..." */
static void
names(char *out, char letter, int n)
{
	*out = '\0';
	for (int i = 0; i < n; i++)
		out += sprintf(out, "%s%c%d", i ? " " : "", letter, i);
}

static struct answer
import_node(const struct schema *s, int opset, int nin, int nout,
            const struct buf *attrs)
{
	/* the last axis of a DFT has pairs */
	bool dft = strcmp(s->name, "DFT") == 0;
	const int64_t dim[4] = { 2, 3, 4, dft ? 2 : 5 }, vector[1] = { 3 };
	struct buf g = { 0 }, n = { 0 }, m = { 0 };
	char in[128], out[128], name[16];
	bool rnn = strstr("GRU LSTM RNN", s->name) != NULL;
	bool labels = strstr("NegativeLogLikelihoodLoss "
	                     "SoftmaxCrossEntropyLoss", s->name) != NULL;

	names(in, 'i', nin);
	names(out, 'y', nout);
	put_names(&n, 1, in);
	put_names(&n, 2, out);
	put_str(&n, 4, s->name);
	put_str(&n, 7, s->domain);
	memcpy(n.b + n.n, attrs->b, attrs->n);
	n.n += attrs->n;
	put_msg(&g, 1, &n);
	for (int i = 0; i < nin; i++) {
		bool list = strcmp(s->name, "Conv") != 0 && i > 2 && !rnn;

		snprintf(name, sizeof name, "i%d", i);
		put_value(&g, 11, name, labels && i == 1 ? ONNX_INT64
		          : ONNX_FLOAT, list ? 1 : rnn ? 3 : 4, list ? vector
		          : dim);
	}
	for (int i = 0; i < nout; i++) {
		snprintf(name, sizeof name, "y%d", i);
		put_value(&g, 12, name, ONNX_FLOAT, 4, dim);
	}
	put_int(&m, 1, 10);
	put_opset(&m, 8, "", opset);
	if (*s->domain)
		put_opset(&m, 8, s->domain, 1);
	put_msg(&m, 7, &g);
	return import(&m);
}

/* The k-th value to try for an attribute; false after the last. */
static bool
value_of(const struct schema *s, const struct attribute *a, int k, char *out)
{
	const char *list = NULL;
	double x = atof(a->value);

	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
		if (of(samples[i].op, s) && strcmp(samples[i].attr,
		                                   a->name) == 0)
			list = samples[i].values;
	if (!list && strncmp(a->type, "string", 6) == 0)
		list = words;
	if (!list) {
		snprintf(out, NAME, "%.9g", k == 0 ? x + 1 : x - 1);
		return k < 2;
	}
	for (; k > 0 && *list; k--)
		list += strcspn(list, " ") + strspn(list + strcspn(list, " "),
		                                    " ");
	snprintf(out, NAME, "%.*s", (int)strcspn(list, " "), list);
	return *list;
}

/* All required attributes but one. */
static struct buf
required(const struct schema *s, const struct attribute *but)
{
	struct buf attrs = { 0 };
	char value[NAME];

	for (int i = 0; i < s->nattr; i++) {
		const struct attribute *a = &s->attr[i];

		if (a == but || strcmp(a->value, "required") != 0)
			continue;
		value_of(s, a, 0, value);
		put_attribute(&attrs, a->name, a->type, value);
	}
	return attrs;
}

/* ---- checks ---- */

static void
check_default(const struct schema *s, int opset, const struct attribute *a,
              const struct answer *base)
{
	struct buf attrs = required(s, a);
	struct answer o;

	if (strcmp(a->value, "-") == 0 || strcmp(a->value, "required") == 0)
		return;
	put_attribute(&attrs, a->name, a->type, a->value);
	o = import_node(s, opset, s->nin[0], s->nout[0], &attrs);
	if (!o.text)
		fault(s, "the default %s=%s is refused: %s", a->name, a->value,
		      o.said);
	else if (strcmp(o.text, base->text) != 0 && !is_ignored(s, a))
		fault(s, "%s=%s, the default, is not taken when it is absent:\n"
		      "%s%s", a->name, a->value, base->text, o.text);
	done(&o);
}

/* Whether another value is refused or makes another graph, here of a node with
 * so many inputs and outputs. */
static bool
matters(const struct schema *s, int opset, const struct attribute *a, int nin,
        int nout)
{
	struct buf attrs = required(s, a);
	struct answer base = import_node(s, opset, nin, nout, &attrs);
	char value[NAME], mistyped[NAME + 32];
	bool yes = false;

	snprintf(mistyped, sizeof mistyped, "attribute '%s': expected",
	         a->name);
	for (int k = 0; value_of(s, a, k, value); k++) {
		struct answer o;

		attrs = required(s, a);
		put_attribute(&attrs, a->name, a->type, value);
		o = import_node(s, opset, nin, nout, &attrs);
		if (strstr(o.said, "is not known")
		    || strstr(o.said, mistyped))
			fault(s, "%s", o.said);
		yes |= !o.text || !base.text
			|| strcmp(o.text, base.text) != 0;
		done(&o);
	}
	done(&base);
	return yes;
}

static void
check_changed(const struct schema *s, int opset, const struct attribute *a)
{
	struct buf attrs = required(s, a);
	struct answer o;

	if (!matters(s, opset, a, s->nin[0], s->nout[0]) && !is_ignored(s, a)
	    && !matters(s, opset, a, most(s->nin), most(s->nout)))
		fault(s, "attribute '%s' has no effect", a->name);
	if (strcmp(a->type, "string") != 0)
		return;
	put_attribute(&attrs, a->name, a->type, "no$sense");
	o = import_node(s, opset, s->nin[0], s->nout[0], &attrs);
	if (o.text)
		fault(s, "%s='no$sense' is accepted", a->name);
	done(&o);
}

static void
check_inputs(const struct schema *s, int opset)
{
	int n = most(s->nin);
	struct buf attrs = required(s, NULL);
	struct answer o = import_node(s, opset, n, s->nout[0], &attrs);

	for (int i = 0; o.text && i < n; i++) {
		char name[16];
		const char *first;

		snprintf(name, sizeof name, "%%i%d", i);
		first = strstr(o.text, name);
		if (!first || !strstr(first + 1, name))
			fault(s, "input %d is not read", i);
	}
	if (!o.text)
		fault(s, "with %d inputs: %s", n, o.said);
	done(&o);
}

static void
check_outputs(const struct schema *s, int opset)
{
	struct buf attrs = required(s, NULL);
	struct answer o = import_node(s, opset, s->nin[0], most(s->nout),
	                               &attrs);

	if (strstr(o.said, "graph output"))
		fault(s, "with all outputs: %s", o.said);
	done(&o);
}

static void
check_opset(const struct schema *s, int opset)
{
	struct buf attrs = required(s, NULL);
	struct answer base = import_node(s, opset, s->nin[0], s->nout[0],
	                                  &attrs), o;

	/* a Constant has one of its attributes */
	if (!base.text && strcmp(s->name, "Constant") != 0)
		fault(s, "refused: %s", base.said);
	for (int i = 0; i < s->nattr; i++) {
		if (strcmp(s->attr[i].type, "sparse_tensor") == 0)
			continue;
		check_default(s, opset, &s->attr[i], &base);
		check_changed(s, opset, &s->attr[i]);
	}
	if (!base.text) {
		done(&base);
		return;
	}
	put_attribute(&attrs, "nobody_knows_it", "int", "1");
	o = import_node(s, opset, s->nin[0], s->nout[0], &attrs);
	if (!strstr(o.said, "'nobody_knows_it' is not known"))
		fault(s, "unknown attributes are accepted: %s", o.said);
	done(&o);
	done(&base);
	check_inputs(s, opset);
	check_outputs(s, opset);
}

static void
check(const struct schema *s)
{
	const struct onnx_op *op = onnx_op_find(s->domain, s->name);
	int first = op && !*s->domain && op->since > s->version ? op->since
		: s->version;

	if (!op || !op->run || first > s->last)
		return;
	for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
		if (strcmp(apart[i], s->name) == 0)
			return;
	if (*s->domain) {
		check_opset(s, NEWEST_OPSET);
		return;
	}
	check_opset(s, first);
	if (s->last > first)
		check_opset(s, s->last);
}

/* ---- the table ---- */

static int
read_span(const char *text, int span[2])
{
	span[1] = -1;
	return sscanf(text, "%d-%d", &span[0], &span[1]) >= 1;
}

static void
read_schema(const char *line, struct schema *s)
{
	char name[2 * NAME], in[NAME], out[NAME], *dot;

	*s = (struct schema){ .last = NEWEST_OPSET };
	if (sscanf(line, "%95s %d %47s %47s", name, &s->version, in, out) != 4
	    || !read_span(in, s->nin) || !read_span(out, s->nout))
		abort();
	if (s->nout[0] == 0)
		s->nout[0] = 1;         /* of a few, any one */
	if (strncmp(name, "Einsum", 6) == 0)
		s->nin[1] = 1;          /* as its samples have */
	if (strncmp(name, "DFT", 3) == 0)
		s->nin[1] = 2;          /* the axis must be a constant */
	dot = strrchr(name, '.');
	snprintf(s->name, NAME, "%.47s", dot ? dot + 1 : name);
	if (dot)
		snprintf(s->domain, NAME, "%.*s", (int)(dot - name), name);
}

int
main(int argc, char **argv)
{
	static struct schema s[MAX_LINES];
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	char line[256];
	int n = 0, opset = 0, ir = 0;

	if (!f)
		return 2;
	while (fgets(line, sizeof line, f)) {
		struct attribute *a = n ? &s[n - 1].attr[s[n - 1].nattr] : NULL;

		if (*line == '#' || sscanf(line, "newest %d %d", &opset, &ir))
			continue;
		if (*line != '\t') {
			read_schema(line, &s[n++]);
			if (n > 1 && strcmp(s[n - 1].name, s[n - 2].name) == 0)
				s[n - 2].last = s[n - 1].version - 1;
		} else if (s[n - 1].nattr++ == MAX_ATTR
		           || sscanf(line, " %47s %47s %47s", a->name, a->type,
		                     a->value) != 3) {
			abort();
		}
	}
	fclose(f);
	if (opset != NEWEST_OPSET)
		printf("the table ends at opset %d\n", opset);
	for (int i = 0; i < n; i++)
		check(&s[i]);
	printf("%d schemas, %d faults\n", n, faults);
	return faults || n < 300 || opset != NEWEST_OPSET;
}
