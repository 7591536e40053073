/* ckrun report: arguments and files. */
#include "runtime/ckrun/run_report/run_report.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/file/file.h"
#include "runtime/support/path.h"

static const char help[] =
	"usage: ckrun report LOG... -o FILE.html\n"
	"Makes a page of curves, with their last and best values, from up to 8 "
	"logs that\n--log wrote as JSON lines or CSV.\n"
	"  -o FILE.html, --out   output file; - for standard output";

struct report_args {
	const char *log[RUNS], *out;
	size_t n;
};

static int
report_usage(const char *what, const char *name)
{
	char text[NAME_TEXT];

	fprintf(stderr, "ckrun: %s%s; see ckrun report --help\n", what,
	        err_name(text, sizeof(text), name));
	return USAGE;
}

static int
add_log(struct report_args *j, const char *path)
{
	if (j->n == RUNS)
		return report_usage("a page shows at most 8 runs; one too "
		                    "many: ", path);
	j->log[j->n++] = path;
	return DONE;
}

static int
parse_report_args(struct report_args *j, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *a = argv[i];
		bool joined = !strncmp(a, "--out=", 6);
		int status = DONE;

		if (joined || !strcmp(a, "-o") || !strcmp(a, "--out")) {
			if (!joined && i + 1 == argc)
				return report_usage("-o needs a file", "");
			if (j->out)
				return report_usage("-o is given twice", "");
			j->out = joined ? a + 6 : argv[++i];
		} else if (a[0] == '-' && a[1]) {
			status = report_usage("unknown option of ckrun "
			                      "report: ", a);
		} else {
			status = add_log(j, a);
		}
		if (status)
			return status;
	}
	if (!j->n)
		return report_usage("no log given; `ckrun --log` writes one",
		                    "");
	if (!j->out)
		return report_usage("no output file given; try: -o FILE.html",
		                    "");
	for (size_t i = 0; i < j->n; i++)
		if (path_same(j->log[i], j->out))
			return report_usage("the page would overwrite the log ",
			                    j->log[i]);
	return DONE;
}

struct run_page {
	const struct history *h;
	size_t n;
	struct err *e;
};

static ckr_status
print_run_page(FILE *out, void *page)
{
	const struct run_page *p = page;

	return page_put(p->h, p->n, out) ? CKR_OK
	       : err_no_memory(p->e);
}

static ckr_status
write_run_page(struct run_page *p, const char *path)
{
	struct new_file file;

	if (strcmp(path, "-")) {
		CKR_TRY(new_file_open(&file, path, p->e));
		return new_file_print(&file, print_run_page, p, p->e);
	}
	CKR_TRY(print_run_page(stdout, p));
	return fflush(stdout) || ferror(stdout)
	       ? err_set(p->e, CKR_EIO, "standard output: cannot write: %m")
	       : CKR_OK;
}

static void
warn_broken(const struct history *h)
{
	char name[NAME_TEXT];

	if (h->broken)
		fprintf(stderr, "ckrun: warning: %s: skipped %llu malformed "
		        "lines, the first at line %llu: %s\n",
		        err_name(name, sizeof(name), h->path),
		        (unsigned long long)h->broken,
		        (unsigned long long)h->broken_line, h->why);
}

int
report_run(int argc, char **argv)
{
	struct report_args j = { .n = 0 };
	struct history h[RUNS] = { 0 };
	struct err e = { 0 };
	ckr_status s = CKR_OK;
	int status;

	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return puts(help) < 0 ? FAILED : DONE;
	status = parse_report_args(&j, argc, argv);
	if (status)
		return status;
	for (size_t i = 0; i < j.n && s == CKR_OK; i++) {
		s = history_read(&h[i], j.log[i], &e);
		if (s == CKR_OK)
			warn_broken(&h[i]);
	}
	if (s == CKR_OK)
		s = write_run_page(&(struct run_page){ h, j.n, &e }, j.out);
	if (s != CKR_OK)
		fprintf(stderr, "ckrun: %s\n", e.text);
	for (size_t i = 0; i < j.n; i++)
		history_free(&h[i]);
	return s == CKR_OK ? DONE : FAILED;
}
