/* The driver: files, compilers, messages, faults at run time. */
#include "codegen/object_cache.h"
#include "tests/codegen/harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures;

static void
expect(const char *what, bool ok)
{
	if (!ok) {
		fprintf(stderr, "failed: %s\n", what);
		failures++;
	}
}

/* A gather whose index is out of range, under a name that is trouble. */
static void
small_graph(struct setup *t)
{
	setup_open(t, "*/ \"?\?/\\\n%s");
	case_begin(t, "gather");
	APPLY(t, OP_GATHER, NULL, given(t, DT_F32, SHAPE(4, 5), -1, 1),
	      listed(t, DT_I64, SHAPE(3), (int64_t[]){ 1, 4, -4 }));
	APPLY(t, OP_ADD, NULL, given(t, DT_F32, SHAPE(4), -1, 1),
	      val_const(t->g, "name \"?\?/ */ \\ %s \x01", DT_F32, SHAPE(4),
	                (float[]){ 1, 2, 3, 4 }));
}

static int
count_files(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static char *
path(char *buf, const char *dir, const char *name)
{
	snprintf(buf, 200, "%.120s/%.60s", dir, name);
	return buf;
}

/* What a failing compilation says. */
static void
check_failure(struct setup *t, const Plan *p, const char *dir, const char *cc,
              const char *so, const char *says)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	Diag *kept = t->diag;

	t->diag = diag_new("test", f);
	expect("a failure is one", !setup_compile(t, p, cc, so, NULL, 1));
	diag_free(t->diag);
	t->diag = kept;
	fclose(f);
	if (!strstr(text, says)) {
		fprintf(stderr, "expected '%s' in: %s\n", says, text);
		failures++;
	}
	expect("nothing is left behind", count_files(dir) == 0);
	free(text);
}

static void
check_fault(struct setup *t, const char *so)
{
	struct run r;
	const float *y;

	if (!run_open(&r, so)) {
		failures++;
		return;
	}
	run_once(&r, t, 2);
	expect("a bad index is a fault", r.env.fault &&
	       strstr(r.env.fault, "index") && r.env.fault_value == 4);
	y = run_tensor(&r, r.lib->program[0].arg[2]);
	expect("its row is zero", y[5] == 0 && y[9] == 0);
	expect("the name survives", !strcmp(r.lib->name, t->g->name));
	expect("the constant's name survives", val_find(t->g,
	       "name \"?\?/ */ \\ %s \x01") != 0);
	expect("one more constant", r.lib->constants_bytes == 64);
	run_close(&r);
}

static void
check_sources(struct setup *t, const Plan *p, const char *dir)
{
	char so[200], keep[200], buf[200], command[1000];
	struct stat st;

	path(so, dir, "m.so");
	path(keep, dir, "src");
	expect("compiles", setup_compile(t, p, "cc -O1", so, keep, 1));
	check_fault(t, so);
	expect("sources are kept", stat(path(buf, keep, "model.c"), &st) == 0 &&
	       stat(path(buf, keep, "kernels.c"), &st) == 0 &&
	       stat(path(buf, keep, "constants.bin"), &st) == 0);
	snprintf(command, sizeof command, "cd %s && cc -std=c11 -Wall -Wextra "
	         "-Werror -fopenmp -fPIC -shared -o x.so *.c -lm", keep);
	expect("sources compile by themselves", system(command) == 0);
	/* AddressSanitizer adds one to each */
	snprintf(command, sizeof command, "nm -D --defined-only %s | "
	         "grep -v __odr_asan | grep -c ' [A-Z] ' | grep -qx 1", so);
	expect("one symbol is exported", system(command) == 0);
	snprintf(command, sizeof command, "rm -r %s/src %s/m.so", dir, dir);
	expect("clean up", system(command) == 0);
}

static void
check_weights(const char *dir)
{
	const struct codegen_origin from = { "a \"b\".onnx", "--lr 1" };
	struct codegen_origin back_from;
	struct setup t;
	char file[200], head[400] = { 0 };
	float data[3] = { 1, 2, 3 }, back[3];
	ValId v;
	FILE *f;
	size_t n;

	setup_open(&t, "w");
	v = val_new(t.g, V_PARAM, "a \"b\"\n", DT_F32, SHAPE(3));
	t.g->val[v].data = data;
	path(file, dir, "m.safetensors");
	expect("weights", codegen_weights(t.g, &from, file, t.diag));
	f = fopen(file, "rb");
	n = f && fread(head, 1, 8, f) == 8 ? (unsigned char)head[0] : 0;
	expect("header", n > 0 && n % 8 == 0 && fread(head, 1, n, f) == n &&
	       fread(back, 1, 12, f) == 12 && fgetc(f) == EOF);
	expect("contents", !memcmp(data, back, sizeof data));
	expect("names are escaped", strstr(head, "\"a \\\"b\\\"\\u000a\":"
	       "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}"));
	expect("origin", codegen_weights_origin(file, &back_from, t.g->arena) &&
	       !strcmp(back_from.model, from.model) &&
	       !strcmp(back_from.options, from.options));
	if (f)
		fclose(f);
	unlink(file);
	expect("an unwritable place is an error",
	       !codegen_weights(t.g, &from, "/nonexistent/x", t.diag));
	setup_close(&t);
}

/* The name of unit.c's object if file number `changed` has another text. */
static const char *
object_name(struct setup *t, const char *words, int changed)
{
	static const char *const text[] = {
		"#include \"one.h\"\nint unit;\n",
		"#include \"two.h\"\n", "#include \"one.h\"\nint two;\n",
		"int other;\n",
	};
	static const char *const name[] = { "unit.c", "one.h", "two.h",
	                                    "other.h" };
	Arena *a = t->g->arena;
	struct sources src = { .arena = a };
	struct command c = { .n = 0 };
	struct object_cache cache;

	for (int i = 0; i < 4; i++) {
		const char *s = arena_printf(a, "%s%s", text[i],
		                             i == changed ? " " : "");

		sources_add(&src, name[i], s, strlen(s));
	}
	c.argv[c.n++] = "/proc/self/exe";       /* no script */
	c.argv[c.n++] = words;
	c.given = c.n;
	cache = object_cache_open(&src, &c, a);
	return object_cache_path(&cache, &src.v[0]);
}

static void
check_object_names(const char *dir)
{
	const char *plain;
	struct setup t;

	small_graph(&t);
	setenv("CKC_CACHE", dir, 1);
	plain = object_name(&t, "-O2", -1);
	expect("objects have a name", plain != NULL);
	expect("the same again", plain
	       && !strcmp(plain, object_name(&t, "-O2", -1)));
	for (int i = 0; plain && i < 3; i++)
		expect("another text, another object",
		       strcmp(plain, object_name(&t, "-O2", i)) != 0);
	expect("a text that is not included", plain
	       && !strcmp(plain, object_name(&t, "-O2", 3)));
	expect("another argument", plain
	       && strcmp(plain, object_name(&t, "-O3", -1)) != 0);
	expect("an argument that names a file", !object_name(&t, "-Ix", -1)
	       && !object_name(&t, "-fplugin=x", -1)
	       && !object_name(&t, "@x", -1));
	setenv("CPATH", "/", 1);
	expect("a variable of compilers", !object_name(&t, "-O2", -1));
	unsetenv("CPATH");
	setup_close(&t);
	setenv("CKC_CACHE", "off", 1);
}

int
main(void)
{
	char dir[] = "/tmp/ckc-driver-XXXXXX", tmp[200], so[200];
	struct setup t;
	Plan *p;

	if (!mkdtemp(dir))
		return 1;
	mkdir(path(tmp, dir, "tmp"), 0700);
	setenv("TMPDIR", tmp, 1);
	check_object_names(dir);
	small_graph(&t);
	p = setup_plan(&t, 1);
	path(so, tmp, "m.so");
	check_failure(&t, p, tmp, "no-such-compiler-anywhere", so, "--cc");
	check_failure(&t, p, tmp, "  ", so, "no C compiler given");
	check_failure(&t, p, tmp, "cc --no-such-flag", so, "no-such-flag");
	check_failure(&t, p, tmp, "cc", "/nonexistent/m.so", "/nonexistent");
	setenv("TMPDIR", "/nonexistent", 1);
	check_failure(&t, p, tmp, "cc", so, "/nonexistent");
	setenv("TMPDIR", tmp, 1);
	check_sources(&t, p, tmp);
	expect("the temporary directory is empty", count_files(tmp) == 0);
	check_weights(dir);
	setup_close(&t);
	rmdir(tmp);
	rmdir(dir);
	return failures != 0;
}
