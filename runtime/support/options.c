/* Options of a program: the parser, --help, and setters of plain values. */
#include "runtime/support/options.h"
#include "runtime/support/number.h"

#include <string.h>

const struct option_spec *
option_find(const struct option_spec *row, size_t nrow, const char *arg)
{
	size_t n = strcspn(arg, "=");

	for (size_t i = 0; n > 2 && i < nrow; i++)
		if (strlen(row[i].name) == n - 2 && !strncmp(arg, "--", 2)
		    && !strncmp(row[i].name, arg + 2, n - 2))
			return &row[i];
	return NULL;
}

const char *
option_value(int argc, char **argv, int *i)
{
	const char *eq = strchr(argv[*i], '=');

	return eq ? eq + 1 : *i + 1 < argc ? argv[++*i] : NULL;
}

void
option_help(const struct option_spec *row, size_t nrow, int group,
            unsigned verbs, const char *heading, int column, FILE *out)
{
	for (const struct option_spec *r = row; r < row + nrow; r++) {
		int n;

		if (r->group != group || !(r->verbs & verbs))
			continue;
		fputs(heading, out);
		heading = "";
		n = fprintf(out, "  --%s%s%s", r->name, r->arg ? " " : "",
		            r->arg ? r->arg : "");
		fprintf(out, "%*s%s\n", n < column ? column - n : 1, "",
		        r->help);
	}
}

/* ---- setters ---- */

static bool
reject(struct arg_parser *p, enum option_fault fault, const char *arg,
       const char *expected)
{
	return p->reject(p, fault, arg, p->row->expected ? p->row->expected
	                 : expected);
}

bool
set_true(struct arg_parser *p, const char *arg, void *field)
{
	(void)p;
	(void)arg;
	*(bool *)field = true;
	return true;
}

bool
set_string(struct arg_parser *p, const char *arg, void *field)
{
	if (!*arg && !p->empty)
		return reject(p, OPTION_BAD, arg, "a value");
	*(const char **)field = arg;
	return true;
}

bool
set_once(struct arg_parser *p, const char *arg, void *field)
{
	const char *before = *(const char **)field;

	return !before || !strcmp(before, arg) ? set_string(p, arg, field)
		: p->reject(p, OPTION_TWICE, arg, before);
}

/* Position of the argument among the words of the option's row; -1 after a
 * message. */
static int
find_word(struct arg_parser *p, const char *arg)
{
	const char *words = p->row->words ? p->row->words : p->row->arg;
	size_t len = strlen(arg);

	for (int i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (n == len && !strncmp(words, arg, n))
			return i;
		words += n + (words[n] == '|');
	}
	reject(p, OPTION_BAD, arg, p->row->arg);
	return -1;
}

bool
set_first(struct arg_parser *p, const char *arg, void *field)
{
	int i = find_word(p, arg);

	*(bool *)field = i == 0;
	return i >= 0;
}

bool
set_second(struct arg_parser *p, const char *arg, void *field)
{
	int i = find_word(p, arg);

	*(bool *)field = i == 1;
	return i >= 0;
}

bool
set_word(struct arg_parser *p, const char *arg, void *field)
{
	int i = find_word(p, arg);

	if (i >= 0)
		*(int *)field = p->row->value ? p->row->value[i] : i;
	return i >= 0;
}

bool
set_whole(struct arg_parser *p, const char *arg, void *field)
{
	uint64_t most = p->row->most ? p->row->most : UINT64_MAX, x;
	char expected[64];

	if (number_whole(arg, most, &x) && (double)x >= p->row->least) {
		memcpy(field, &x, sizeof(x));
		return true;
	}
	snprintf(expected, sizeof(expected), "a number from %.0f to %llu",
	         p->row->least, (unsigned long long)most);
	return reject(p, OPTION_BAD, arg, expected);
}

bool
set_real(struct arg_parser *p, const char *arg, void *field)
{
	if (!number_real(arg, field))
		return reject(p, OPTION_BAD, arg, "a number");
	return *(double *)field >= p->row->least
		|| reject(p, OPTION_RANGE, arg, "a number >= 0");
}
