/* Optimizer steps, averages, accumulation, gradient norm. */
#ifndef CODEGEN_CPU_KERNELS_UPDATE_H
#define CODEGEN_CPU_KERNELS_UPDATE_H

#include "cpu.h"
#include "arith.h"

enum { CKR_NORM_PARTS = 1024, CKR_HALF_BLOCK = 2048 };

/* Parameters of formulas, of which few have all states. */
#define CKR_RULE_PARAMETERS \
	const struct ckr_step *s, float *p, \
	__attribute__((unused)) float *m, __attribute__((unused)) float *v, \
	float g

/* Formulas as they are, and in loops over a block of n elements. */
#define CKR_OPTIMIZER(name, states) \
CKR_LANE void \
ckr_rule_##name(CKR_RULE_PARAMETERS); \
\
static inline void \
ckr_##name(struct ckr_step s, float *y, float *m1, float *v1, const float *p, \
           const float *g, const float *m, const float *v, int64_t n) \
{ \
	_Pragma("omp simd") \
	for (int64_t i = 0; i < n; i++) { \
		float x = p[i], a = (states) > 0 ? m[i] : 0.0f; \
		float b = (states) > 1 ? v[i] : 0.0f; \
\
		ckr_rule_##name(&s, &x, &a, &b, g[i]); \
		y[i] = x; \
		if ((states) > 0) \
			m1[i] = a; \
		if ((states) > 1) \
			v1[i] = b; \
	} \
} \
\
CKR_LANE void \
ckr_rule_##name(CKR_RULE_PARAMETERS)
#include "optimizers.h"

typedef void ckr_rule(struct ckr_step s, float *y, float *m1, float *v1,
                      const float *p, const float *g, const float *m,
                      const float *v, int64_t n);

/* Sums of squares, whose parts depend on n alone: of float32, and of any type
 * in blocks. */
double ckr_norm_part(const float *g, int64_t n, const struct ckr_env *env);
double ckr_half_norm_part(const void *g, int type, int64_t n,
                          const struct ckr_env *env);
/* Write x, an element's new value in float32, which may lie there already, to
 * y, rounded at random; which: 0 the parameter, 1, 2 its states, each with
 * words of its own. */
void ckr_update_store(void *y, int type, struct ckr_update_types t,
                      uint32_t which, int64_t at, float *x, int64_t n,
                      const struct ckr_env *env);
void ckr_accumulate(void *y, const void *acc, const void *g,
                    struct ckr_update_types t, int64_t n,
                    const struct ckr_env *env);
/* y: the average of a parameter, which is p now; y and average have t.y. */
void ckr_ema(void *y, const void *average, const void *p,
             struct ckr_update_types t, int64_t n, const struct ckr_env *env);
/* States and copy may be NULL. */
void ckr_update(ckr_rule *rule, void *y, void *m1, void *v1, void *copy,
                const void *p, const void *g, const void *m, const void *v,
                const float *norm, struct ckr_update_types t, int64_t n,
                int decay, int coupled, const struct ckr_env *env);

#endif
