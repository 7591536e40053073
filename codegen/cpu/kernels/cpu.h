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

/* Texts that GPUs have too: what is a function of the device there; of elements
 * of type ckr_t, or of ckr_t and ckr_u, which are read and written by ckr_get()
 * and ckr_put(). */
#define CKR_DEVICE static inline
#define CKR_TYPED static inline
#define CKR_TYPED2 static inline
#define ckr_get(x) (x)
#define ckr_put(y, x) (*(y) = (x))
typedef float ckr_t, ckr_u;

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

/* Before a loop over so many elements: threads share it if that is worth it.
 * More clauses of OpenMP may follow. */
#define CKR_SHARE(work, ...) CKR_PRAGMA(omp parallel for __VA_ARGS__ \
	num_threads(env->threads) if ((work) > CKR_SMALL))
#define CKR_PRAGMA(x) _Pragma(#x)

/* Kinds of bad data. */
#define CKR_BAD_INDEX "index out of range"
#define CKR_BAD_LABEL "label out of range"
#define CKR_BAD_CAPACITY "--expert-capacity is too small: expected at least"

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
