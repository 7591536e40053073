/* Shared by all kernels of the CPU: threads, faults, lists, sums of a fixed
 * order.
 */
#ifndef CODEGEN_CPU_KERNELS_CPU_H
#define CODEGEN_CPU_KERNELS_CPU_H

#include "ckr_abi.h"

#include <string.h>

#ifdef __clang__        /* helpers that this model does not use; loops that
                         * gcc alone vectorises */
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang diagnostic ignored "-Wunused-function"
#endif

int omp_get_thread_num(void);
int omp_in_parallel(void);

/* Inlined always: a loop with a call out of line would not be vectorised. */
#define CKR_LANE __attribute__((always_inline)) static inline

/* The thread whose workspace a task uses. */
#define CKR_TASK_OWNER(t) omp_get_thread_num()

/* Products where a parallel region may be open. */
static inline ckr_sgemm_fn *
ckr_sgemm(const struct ckr_env *env)
{
	return omp_in_parallel() ? env->sgemm_one : env->sgemm;
}

/* A list as an argument. */
#define CKR_LIST(...) ((const int64_t[]){ __VA_ARGS__ })

/* Elements that are not worth waking threads for. */
enum { CKR_SMALL = 1 << 14 };

/* Bad data: `value`, element `at` of an operand.  The first element of that
 * kind is what the step tells, whichever thread met it first. */
static inline void
ckr_fault(struct ckr_env *env, const char *why, int64_t at, int64_t value)
{
	/* an omp critical would export a symbol of the compiler's */
	while (__atomic_test_and_set(&env->fault_lock, __ATOMIC_ACQUIRE))
		;
	if (!env->fault || at < env->fault_at) {
		env->fault_at = at;
		env->fault_value = value;
		env->fault = why;
	}
	__atomic_clear(&env->fault_lock, __ATOMIC_RELEASE);
}

#endif
