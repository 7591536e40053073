/* Runs some tests of a program alone: CKC_TEST='test_cut*' build/unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void
set_filter(void)
{
	const char *glob = getenv("CKC_TEST");

	if (glob)
		cmocka_set_test_filter(glob);
}
