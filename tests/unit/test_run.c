#include "tests/unit/unit.h"

#include "passes/passes.h"
#include "codegen/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char text[] =
	"graph @g {\n"
	"	input %x: f32[2,3]\n"
	"	%i = identity %x\n"
	"	%y output = neg %i\n"
	"}\n";

struct fixture {
	struct sink s;
	struct options opt;
	Pass pass;
	Graph *g;
	char dir[32];
};

static void
open_fixture(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	sink_open(&f->s);
	f->opt = (struct options){ .fold_limit = 1 << 20, .grad_accum = 1 };
	f->pass = (Pass){ .target = &target_cpu, .diag = f->s.diag, .opt = &f->opt,
	                  .keep = arena_new() };
	f->g = parse(&f->s, text);
	assert_non_null(f->g);
	strcpy(f->dir, "/tmp/ckc-unit-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
}

static void
close_fixture(struct fixture *f)
{
	rmdir(f->dir);
	arena_free(f->pass.keep);
	graph_free(f->g);
	sink_close(&f->s);
}

static char *
read_file(const char *path)
{
	char *contents = NULL;
	size_t n = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	assert_true(getdelim(&contents, &n, 0, f) > 0);
	fclose(f);
	return contents;
}

static void
dumps(void **state)
{
	struct fixture f;
	struct dump_request dump = { "fold", NULL };
	char sub[64], path[96], *dumped, *final;

	(void)state;
	open_fixture(&f);
	snprintf(sub, sizeof sub, "%s/new", f.dir);
	dump.dir = sub;
	assert_true(pass_run(&f.pass, f.g, "bind,fold", NULL, &dump));
	snprintf(path, sizeof path, "%s/02-fold.ck", sub);
	dumped = read_file(path);
	final = print(f.g);
	assert_string_equal(dumped, final);
	free(dumped);
	free(final);
	/* the one asked for, and no temporary file */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(sub), 0);
	close_fixture(&f);
}

static void
no_folder(void **state)
{
	struct fixture f;
	struct dump_request dump = { "all", "/nonexistent/folder" };

	(void)state;
	open_fixture(&f);
	assert_false(pass_run(&f.pass, f.g, "bind", NULL, &dump));
	assert_non_null(strstr(sink_text(&f.s), "cannot create directory"));
	close_fixture(&f);
}

static void
books(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f);
	assert_true(pass_run(&f.pass, f.g, "none", NULL, NULL));
	assert_int_equal(f.g->props, P_BOUND);
	assert_true(pass_run(&f.pass, f.g, "bind,fold", NULL, NULL));
	assert_int_equal(f.g->props & (P_STATIC | P_FUSED), P_STATIC);
	assert_null(f.pass.scratch);
	assert_true(pass_run(&f.pass, f.g, "fuse,layout", "fuse", NULL));
	assert_int_equal(f.g->props & (P_FUSED | P_LAYOUT), P_FUSED);
	close_fixture(&f);
}

/* What the table promises must be enough for what it asks for, in order. */
static void
table(void **state)
{
	uint32_t props = 0;

	(void)state;
	for (const struct pass_info *i = pass_table; i->name; i++) {
		if (i->needs & ~props)
			fail_msg("%s lacks 0x%x", i->name, i->needs & ~props);
		props = (props & ~i->breaks) | i->gives;
	}
	assert_int_equal(props, P_BOUND | P_STATIC | P_CANON | P_LOSS | P_BWD
	                        | P_UPD | P_FUSED | P_LAYOUT | P_PLANNED
	                        | P_PLACED | P_SHARD);
}

int
test_run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dumps), cmocka_unit_test(no_folder),
		cmocka_unit_test(books), cmocka_unit_test(table),
	};

	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
