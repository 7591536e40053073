#include "tests/unit/unit.h"
#include "ir/text/text.h"

#include <stdlib.h>
#include <string.h>

void
sink_open(struct sink *s)
{
	memset(s, 0, sizeof *s);
	s->file = open_memstream(&s->text, &s->size);
	assert_non_null(s->file);
	s->diag = diag_new("t", s->file);
}

const char *
sink_text(struct sink *s)
{
	fflush(s->file);
	return s->text;
}

void
sink_close(struct sink *s)
{
	diag_free(s->diag);
	fclose(s->file);
	free(s->text);
}

Graph *
parse(struct sink *s, const char *text)
{
	return text_parse("x.ck", text, strlen(text), s->diag);
}

char *
print(const Graph *g)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	text_print(g, f);
	fclose(f);
	return text;
}

int
main(void)
{
	int failed = 0;

	failed += test_arena();
	failed += test_shape();
	failed += test_half();
	failed += test_infer();
	failed += test_graph();
	failed += test_text();
	failed += test_verify();
	failed += test_glob();
	failed += test_run();
	return failed != 0;
}
