/* Rules for element-wise arithmetic: powers and divisions with a cheaper
 * equivalent; GELU, SiLU and log-sigmoid in decomposed form.
 *
 * GELU is found whatever the order and association of its factors: with
 * x the argument and t = erf(..) or tanh(..), the root is read as a polynomial
 * in x and t and must be x/2 + x t/2; the argument of t is read as a
 * polynomial in x.
 */
#include "passes/canon/match.h"

#include <math.h>
#include <string.h>

/* ---- powers and divisions ---- */

bool
match_pow(struct rewrite *w, NodeId root)
{
	ValId x = rw_in(w, root, 0), v = 0;
	double e;

	if (!rw_scalar(w, rw_in(w, root, 1), &e) || !rw_float(w, x)
	    || !shape_eq(rw_shape(w, x), rw_shape(w, rw_out(w, root))))
		return false;
	if (e == 1)
		return rw_replace(w, root, x);
	if (e == 2) {
		v = rw_binary(w, OP_MUL, x, x);
	} else if (e == 3) {
		v = rw_binary(w, OP_MUL, x, x);
		v = rw_binary(w, OP_MUL, v, x);
	} else if (e == 0.5) {
		v = rw_unary(w, OP_SQRT, x);
	} else if (e == -1) {
		v = rw_unary(w, OP_RECIP, x);
	} else if (e == -0.5) {
		v = rw_unary(w, OP_SQRT, x);
		v = rw_unary(w, OP_RECIP, v);
	}
	return rw_replace(w, root, v);
}

/* A division by a power of two is a product with the same bits, 1 / x is
 * recip(x); any other division stays. */
bool
match_div(struct rewrite *w, NodeId root)
{
	ValId a = rw_in(w, root, 0), b = rw_in(w, root, 1), c;
	const Shape *out = rw_shape(w, rw_out(w, root));
	double x;
	int e;

	if (!rw_float(w, a))
		return false;
	if (rw_scalar(w, b, &x) && x != 0 && isfinite(x)
	    && shape_eq(rw_shape(w, a), out)
	    && fabs(frexp(x, &e)) == 0.5 && e > -13 && e < 13) {
		/* within the normal numbers of every float type */
		c = rw_const_like(w, b, 1 / x);
		return rw_replace(w, root, rw_binary(w, OP_MUL, a, c));
	}
	if (rw_scalar(w, a, &x) && x == 1 && shape_eq(rw_shape(w, b), out)) {
		return rw_replace(w, root, rw_unary(w, OP_RECIP, b));
	}
	return false;
}

/* x + 0, x - 0, x * 1, x / 1.  (-0 + 0 is 0: the one value that changes.) */
bool
match_neutral(struct rewrite *w, NodeId root)
{
	Op op = w->g->node[root].op;
	double neutral = op == OP_ADD || op == OP_SUB ? 0 : 1, c;

	for (int i = 0; i < 2; i++) {
		ValId x = rw_in(w, root, i);

		if (i == 1 && (op == OP_SUB || op == OP_DIV))
			break;
		if (rw_scalar(w, rw_in(w, root, 1 - i), &c) && c == neutral
		    && shape_eq(rw_shape(w, x), rw_shape(w, rw_out(w, root))))
			return rw_replace(w, root, x);
	}
	return false;
}

/* ---- polynomials ---- */

enum { DEG = 4, MAX_DEPTH = 8 };

/* Sum of c[i][j] x^j t^i. */
struct poly {
	double c[2][DEG];
};

struct vars {
	ValId x, t;             /* t may be 0 */
};

static bool
poly_mul(const struct poly *a, const struct poly *b, struct poly *y)
{
	memset(y, 0, sizeof *y);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < DEG; j++)
			for (int k = 0; k < 2; k++)
				for (int l = 0; l < DEG; l++) {
					double c = a->c[i][j] * b->c[k][l];

					if (c == 0)
						continue;
					if (i + k > 1 || j + l >= DEG)
						return false;
					y->c[i + k][j + l] += c;
				}
	return true;
}

/* v as a polynomial in x and t; false if it is none. */
static bool
poly_of(const struct rewrite *w, ValId v, struct vars z, int depth,
        struct poly *y)
{
	struct poly a, b;
	NodeId n = rw_def(w, v);
	Op op = n ? w->g->node[n].op : OP_NONE;
	double c;

	memset(y, 0, sizeof *y);
	if (v == z.x) {
		y->c[0][1] = 1;
		return true;
	}
	if (v == z.t) {
		y->c[1][0] = 1;
		return true;
	}
	if (rw_scalar(w, v, &c)) {
		y->c[0][0] = c;
		return true;
	}
	if (depth == 0 || (op != OP_MUL && op != OP_ADD && op != OP_SUB
	                   && op != OP_DIV))
		return false;
	if (!shape_eq(rw_shape(w, v), rw_shape(w, z.x)))
		return false;
	if (op == OP_DIV) {
		if (!rw_scalar(w, rw_in(w, n, 1), &c) || c == 0)
			return false;
		memset(&b, 0, sizeof b);
		b.c[0][0] = 1 / c;
		op = OP_MUL;
	} else if (!poly_of(w, rw_in(w, n, 1), z, depth - 1, &b)) {
		return false;
	}
	if (!poly_of(w, rw_in(w, n, 0), z, depth - 1, &a))
		return false;
	if (op == OP_MUL)
		return poly_mul(&a, &b, y);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < DEG; j++)
			y->c[i][j] = a.c[i][j] + (op == OP_ADD ? b.c[i][j]
			                                       : -b.c[i][j]);
	return true;
}

/* Whether y is c1 x + c3 x^3. */
static bool
poly_odd(const struct poly *y, double c1, double c3)
{
	for (int j = 0; j < DEG; j++)
		if (y->c[1][j] != 0)
			return false;
	return y->c[0][0] == 0 && y->c[0][2] == 0
		&& near_to(y->c[0][1], c1, 1e-3)
		&& near_to(y->c[0][3], c3, 1e-3);
}

/* Whether y is x/2 + x t/2. */
static bool
poly_gate(const struct poly *y)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < DEG; j++)
			if (!near_to(y->c[i][j], j == 1 ? 0.5 : 0, 1e-6))
				return false;
	return true;
}

/* ---- GELU, SiLU ---- */

/* The erf or tanh below v without other readers; 0: none. */
static ValId
find_squash(const struct rewrite *w, ValId v, int depth)
{
	NodeId n = rw_def(w, v);
	Op op = n ? w->g->node[n].op : OP_NONE;

	if (!rw_single(w, v))
		return 0;
	if (op == OP_ERF || op == OP_TANH)
		return v;
	if (depth == 0 || (op != OP_MUL && op != OP_ADD && op != OP_DIV))
		return 0;
	for (int i = 0; i < 2; i++) {
		ValId t = find_squash(w, rw_in(w, n, i), depth - 1);

		if (t)
			return t;
	}
	return 0;
}

/* x such that t's argument u is GELU's polynomial in x.  x may be any value
 * from which u is computed. */
static bool
find_x(const struct rewrite *w, ValId u, ValId v, int depth, bool tanh,
       struct vars *z, ValId root)
{
	static const double sqrt_half = 0.70710678118654752;
	static const double c1 = 0.79788456080286536;   /* sqrt(2 / pi) */
	NodeId n = rw_def(w, v);
	Op op = n ? w->g->node[n].op : OP_NONE;
	struct poly arg, gate;
	double c;

	if (rw_scalar(w, v, &c))
		return false;
	if (v != u) {
		z->x = v;
		if (poly_of(w, u, (struct vars){ v, 0 }, MAX_DEPTH, &arg)
		    && poly_odd(&arg, tanh ? c1 : sqrt_half,
		                tanh ? c1 * 0.044715 : 0)
		    && poly_of(w, root, *z, MAX_DEPTH, &gate)
		    && poly_gate(&gate))
			return true;
	}
	if (depth == 0 || (op != OP_MUL && op != OP_ADD && op != OP_DIV))
		return false;
	for (int i = 0; i < 2; i++)
		if (find_x(w, u, rw_in(w, n, i), depth - 1, tanh, z, root))
			return true;
	return false;
}

bool
match_gelu(struct rewrite *w, NodeId root)
{
	struct vars z = { 0, 0 };
	Attr a = attr_default(OP_GELU);
	NodeId squash;
	ValId u;

	for (int i = 0; i < 2 && !z.t; i++)
		z.t = find_squash(w, rw_in(w, root, i), 3);
	if (!z.t || !rw_float(w, z.t))
		return false;
	squash = rw_def(w, z.t);
	a.GELU.tanh = w->g->node[squash].op == OP_TANH;
	u = rw_in(w, squash, 0);
	if (!find_x(w, u, u, 5, a.GELU.tanh, &z, rw_out(w, root)))
		return false;
	if (!shape_eq(rw_shape(w, z.x), rw_shape(w, rw_out(w, root))))
		return false;
	return rw_replace(w, root, rw_emit(w, OP_GELU, 1, &z.x, &a));
}

bool
match_silu(struct rewrite *w, NodeId root)
{
	for (int i = 0; i < 2; i++) {
		ValId s = rw_in(w, root, i), x = rw_in(w, root, 1 - i);
		NodeId n = rw_is(w, s, OP_SIGMOID);

		if (!n || !rw_single(w, s) || rw_in(w, n, 0) != x)
			continue;
		return rw_replace(w, root, rw_unary(w, OP_SILU, x));
	}
	return false;
}

/* ---- log-sigmoid ---- */

/* log(sigmoid(x)) and log(1 - sigmoid(x)), which exporters write for
 * log-sigmoid and binary cross entropy with logits.  In this form they are
 * infinite, and their gradients undefined, from |x| = 17 or 104 on;
 * -softplus(-x) and -softplus(x) are not. */
bool
match_log_sigmoid(struct rewrite *w, NodeId root)
{
	ValId s = rw_in(w, root, 0), x;
	NodeId n = rw_is(w, s, OP_SUB);
	double one;
	bool rest = n && rw_scalar(w, rw_in(w, n, 0), &one) && one == 1
		&& shape_eq(rw_shape(w, s), rw_shape(w, rw_in(w, n, 1)));

	n = rw_is(w, rest ? rw_in(w, n, 1) : s, OP_SIGMOID);
	if (!n)
		return false;
	x = rw_in(w, n, 0);
	x = rest ? x : rw_unary(w, OP_NEG, x);
	x = rw_unary(w, OP_SOFTPLUS, x);
	return rw_replace(w, root, rw_unary(w, OP_NEG, x));
}
