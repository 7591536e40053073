/* Train a model by interpretation: what the importer and the passes made of
 * it, in double precision and without a line of generated code.
 *
 *     ref_model DIR CKC-ARGUMENTS...
 *
 * Reads DIR/setup, see train.h.  Runs the passes up to --stop-after (default:
 * optim), interprets the graph (after place: in the memory that was planned,
 * see interp_place), and writes DIR/log.jsonl (loss of every step),
 * DIR/grads.safetensors (gradients of the first step),
 * DIR/start.safetensors and DIR/params.safetensors (parameters before the
 * first step and after the last).
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/ref/train.h"

struct entry {
	const char *name;
	ValId val;
};

static void
put_name(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		putc(*s, f);
	}
	putc('"', f);
}

static void
write_tensors(struct run *r, const char *name, const struct entry *e, int n)
{
	FILE *f = run_file(r, name, "wb");
	char *text;
	size_t size;
	FILE *head = open_memstream(&text, &size);
	int64_t at = 0;
	uint64_t length;

	putc('{', head);
	for (int i = 0; i < n; i++) {
		Shape s = run_shape(r, e[i].val);
		int64_t bytes = 4 * shape_nelem(&s);

		if (i > 0)
			putc(',', head);
		put_name(head, e[i].name);
		fputs(":{\"dtype\":\"F32\",\"shape\":[", head);
		for (int k = 0; k < s.rank; k++)
			fprintf(head, "%s%lld", k ? "," : "",
			        (long long)s.dim[k]);
		fprintf(head, "],\"data_offsets\":[%lld,%lld]}",
		        (long long)at, (long long)(at + bytes));
		at += bytes;
	}
	putc('}', head);
	fclose(head);
	length = size;
	fwrite(&length, sizeof length, 1, f);
	fwrite(text, 1, size, f);
	free(text);
	for (int i = 0; i < n; i++) {
		int64_t count = run_elements(r, e[i].val);
		const double *x = run_get(r, e[i].val);

		for (int64_t k = 0; k < count; k++) {
			float y = x ? (float)x[k] : 0;

			fwrite(&y, sizeof y, 1, f);
		}
	}
	fclose(f);
}

static void
write_gradients(struct run *r)
{
	struct entry *e = arena_array(r->arena, r->g->nval, sizeof *e);
	int n = 0;

	FOR_VALS (v, r->g)
		if (v->kind == V_TEMP && v->param)
			e[n++] = (struct entry){ r->g->val[v->param].name,
				val_id(r->g, v) };
	write_tensors(r, "grads.safetensors", e, n);
}

static void
write_parameters(struct run *r, const char *name)
{
	struct entry *e = arena_array(r->arena, r->g->nval, sizeof *e);
	int n = 0;

	FOR_VALS (v, r->g)
		if (v->kind == V_PARAM || v->kind == V_BUFFER)
			e[n++] = (struct entry){ v->name, val_id(r->g, v) };
	write_tensors(r, name, e, n);
}

static bool
train(struct run *r)
{
	FILE *log = run_file(r, "log.jsonl", "w");
	bool ok = true;

	write_parameters(r, "start.safetensors");
	for (int s = 0; ok && s < r->steps; s++) {
		ok = run_step(r, s);
		if (ok)
			fprintf(log, "{\"step\": %d, \"loss\": %.17g}\n", s,
			        r->loss);
		if (ok && s == 0)
			write_gradients(r);
	}
	fclose(log);
	if (ok)
		write_parameters(r, "params.safetensors");
	return ok;
}

int
main(int argc, char **argv)
{
	struct run r = { .steps = 1 };
	int status;

	if (argc < 3) {
		fputs("usage: ref_model DIR CKC-ARGUMENTS...\n", stderr);
		return 2;
	}
	r.dir = argv[1];
	argv[1] = argv[0];
	status = run_open(&r, argc - 1, argv + 1);
	if (status == 0)
		status = !(run_setup(&r) && train(&r));
	run_close(&r);
	return status;
}
