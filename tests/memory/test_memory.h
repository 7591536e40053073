#ifndef TESTS_MEMORY_TEST_MEMORY_H
#define TESTS_MEMORY_TEST_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* test_cost.c and test_device.c: the number of failures. */
int test_cost(void);
int test_device(void);

#endif
