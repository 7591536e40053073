#include "runtime/ckrun/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/file/parts_folder.h"
#include "runtime/support/now.h"

enum { BLOCK = 4 << 20 };               /* bytes in memory at once */

static const char help[] =
	"usage: ckrun merge DIR -o FILE\n"
	"Joins the parts of a checkpoint that --save DIR/ wrote into the file "
	"that --save FILE\nwould have written, after checking that all parts "
	"are of one complete save.\n"
	"  -o FILE, --out   output file, .safetensors";

struct merge {
	const char *dir, *out;
	struct array_file f;
	struct st_writer w;
	char *block;                    /* [BLOCK] */
	uint64_t done;                  /* bytes */
	double begin;                   /* seconds */
	bool shown;                     /* progress is on the terminal */
	struct err e;
};

static int
merge_usage(const char *what, const char *name)
{
	char text[NAME_TEXT];

	fprintf(stderr, "ckrun: %s%s; see ckrun merge --help\n", what,
	        err_name(text, sizeof(text), name));
	return USAGE;
}

static int
parse_merge_args(struct merge *m, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *a = argv[i];
		bool joined = !strncmp(a, "--out=", 6);

		if (joined || !strcmp(a, "-o") || !strcmp(a, "--out")) {
			if (!joined && i + 1 == argc)
				return merge_usage("-o needs a file", "");
			if (m->out)
				return merge_usage("-o is given twice", "");
			m->out = joined ? a + 6 : argv[++i];
		} else if (a[0] == '-') {
			return merge_usage("unknown option of ckrun merge: ",
			                   a);
		} else if (m->dir) {
			return merge_usage("a second folder: ", a);
		} else {
			m->dir = a;
		}
	}
	if (!m->dir)
		return merge_usage("no folder given; ckrun --save DIR/ writes "
		                   "one", "");
	return m->out ? DONE : merge_usage("no output file given; try: -o "
	                                   "FILE.safetensors", "");
}

/* On a terminal, once it takes long. */
static void
show_progress(struct merge *m)
{
	enum { LONG = 2 };              /* seconds */

	if (!m->shown && (now_sec() - m->begin < LONG || !isatty(2)))
		return;
	m->shown = true;
	fprintf(stderr, "\rckrun: merged %.0f %%", m->f.size
	        ? 100 * (double)m->done / (double)m->f.size : 100);
}

static ckr_status
copy_array(struct merge *m, size_t i)
{
	const struct array *a = &m->f.v[i];
	uint64_t size = dtype_row[a->dtype].nbytes;

	for (uint64_t at = 0, n; at < a->nelem; at += n) {
		n = a->nelem - at < BLOCK / size ? a->nelem - at : BLOCK / size;
		CKR_TRY(parts_read(&m->f, a, at, n, m->block, &m->e));
		CKR_TRY(st_write(&m->w, i, at * size, m->block, n * size,
		                 &m->e));
		m->done += n * size;
		show_progress(m);
	}
	return CKR_OK;
}

/* Entries and metadata of the whole; the writer's own come first. */
static ckr_status
begin_merged(struct merge *m, struct st_entry *entry)
{
	const struct array_file *f = &m->f;
	size_t own = f->nmeta && !strcmp(f->meta->key, "format");

	for (size_t i = 0; i < f->n; i++) {
		const struct array *a = &f->v[i];

		entry[i] = (struct st_entry){ .name = a->name,
			.dtype = a->dtype, .rank = a->rank };
		memcpy(entry[i].dim, a->dim, sizeof(a->dim));
	}
	return st_begin(&m->w, m->out, entry, f->n, f->meta + own,
	                f->nmeta - own, &m->e);
}

static ckr_status
merge_arrays(struct merge *m)
{
	struct st_entry *entry = calloc(m->f.n + 1, sizeof(*entry));
	ckr_status s = entry && m->block ? begin_merged(m, entry)
	               : err_no_memory(&m->e);

	free(entry);
	if (s != CKR_OK)
		return s;
	for (size_t i = 0; i < m->f.n && s == CKR_OK; i++)
		s = copy_array(m, i);
	if (s == CKR_OK)
		return st_commit(&m->w, &m->e);
	st_abort(&m->w);
	return s;
}

static ckr_status
merge_parts(struct merge *m)
{
	ckr_status s;

	CKR_TRY(parts_open(&m->f, m->dir, &m->e));
	m->block = malloc(BLOCK);
	m->begin = now_sec();
	s = parts_verify(&m->f, 0, 1, &m->e);
	if (s == CKR_OK)
		s = merge_arrays(m);
	free(m->block);
	array_close(&m->f);
	if (m->shown)
		fputc('\n', stderr);
	return s;
}

int
merge_run(int argc, char **argv)
{
	struct merge m = { .dir = NULL };
	int status;

	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return puts(help) < 0 ? FAILED : DONE;
	status = parse_merge_args(&m, argc, argv);
	if (status)
		return status;
	if (merge_parts(&m) == CKR_OK)
		return DONE;
	fprintf(stderr, "ckrun: %s\n", m.e.text);
	return FAILED;
}
