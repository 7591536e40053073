/* Adafactor: Shazeer and Stern, "Adafactor: adaptive learning rates with
 * sublinear memory cost", 2018, as torch.optim has it.
 *
 * A parameter of matrices keeps, of the squares of its gradient, means over
 * the rows and over the columns of each; another keeps all of them.  The
 * update is made twice, for its norm and to be applied, and never stored.
 *
 * For a sharded parameter, a rank sums its elements, divides by the number of
 * all elements, and gets the sums over ranks.  Elements are counted from the
 * start of the rank's shard, of which a replica may have only a part.
 */
#ifndef CODEGEN_RULES_KERNELS_FACTORED_H
#define CODEGEN_RULES_KERNELS_FACTORED_H

/* This rank's part of a parameter: so many matrices of rows x cols; 1, 1, n of
 * what is not factored.  At hand are n elements of it from `first` on, of which
 * those behind its end are padding.  Means are over the whole parameter: over
 * all_rows, all_cols, all elements.  by_cols: rows are cut over ranks, so that
 * a matrix's mean is that of its columns. */
struct ckr_adafactor {
	int64_t matrices, rows, cols, first, n, all_rows, all_cols, all;
	int by_cols, decay;
	struct ckr_update_types types;
};

/* A mean moved towards a new one. */
CKR_LANE float
ckr_factor_towards(float old, float mean, float fresh)
{
	return old + fresh * (mean - old);
}

/* The update of an element with gradient d and mean square v.  A NaN stays
 * one; of no gradient there is no update. */
CKR_LANE float
ckr_factor_update(float d, float v, float least)
{
	float u = d / __builtin_sqrtf(v < least ? least : v);

	return d == 0.0f ? 0.0f : u;
}

/* The factor of the update, from the mean squares of the parameter and of the
 * update. */
CKR_LANE float
ckr_factor_rate(double size, double over, float lr, const struct ckr_env *env)
{
	size = sqrt(size);
	over = sqrt(over) / (double)env->threshold;
	if (size < (double)env->eps2)
		size = (double)env->eps2;
	lr = lr < env->max_lr ? lr : env->max_lr;
	return (float)(size * (double)lr / (over > 1 ? over : 1));
}

#endif
