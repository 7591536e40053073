#include "tests/unit/unit.h"

#include "runtime/support/glob.h"

#include <string.h>

static void
matches(void **state)
{
	static const struct {
		const char *pattern, *s;
		bool match;
	} t[] = {
		{ "", "", true }, { "", "a", false }, { "a", "", false },
		{ "*", "", true }, { "*", "a/b", true }, { "**", "x", true },
		{ "a*c", "abbc", true }, { "a*c", "abcd", false },
		{ "a*b*c", "aXbYbZc", true }, { "?", "", false },
		{ "?b", "ab", true }, { "h.?.w", "h.3.w", true },
		{ "h.?.w", "h.13.w", false }, { "[ab]c", "bc", true },
		{ "[ab]c", "cc", false }, { "[!ab]c", "cc", true },
		{ "[a-c]x", "bx", true }, { "[a-c]x", "dx", false },
		{ "[]]", "]", true }, { "[a", "[a", true }, { "[a", "a", false },
		{ "\\*", "*", true }, { "\\*", "a", false },
		{ "*.weight", "h.0.ln_1.weight", true },
		{ "*.weight", "h.0.ln_1.weights", false },
		{ "a-z", "a-z", true }, { "[a-]", "-", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		if (glob_match(t[i].pattern, t[i].s) != t[i].match)
			fail_msg("'%s' against '%s'", t[i].pattern, t[i].s);
}

static void
no_blowup(void **state)
{
	char s[20001];

	(void)state;
	memset(s, 'a', sizeof s - 1);
	s[sizeof s - 1] = 0;
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", s));
}

static void
any(void **state)
{
	const char *const list[] = { "x.*", "y" };

	(void)state;
	assert_true(glob_any(2, list, "x.1"));
	assert_true(glob_any(2, list, "y"));
	assert_false(glob_any(2, list, "z"));
	assert_false(glob_any(0, list, "y"));
}

static void
last(void **state)
{
	const struct glob_wish list[] = {
		{ "*", false }, { "a.*", true }, { "a.b", false },
	};

	(void)state;
	assert_ptr_equal(glob_last(3, list, "x"), &list[0]);
	assert_ptr_equal(glob_last(3, list, "a.c"), &list[1]);
	assert_ptr_equal(glob_last(3, list, "a.b"), &list[2]);
	assert_null(glob_last(0, list, "x"));
	assert_null(glob_last(1, &list[1], "x"));
}

int
test_glob(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches), cmocka_unit_test(no_blowup),
		cmocka_unit_test(any), cmocka_unit_test(last),
	};

	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
