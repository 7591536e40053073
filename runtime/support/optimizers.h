/* The optimizers, a row each.
 *
 * UPDATE(ID, text, states, flops)
 *   An op that updates a parameter element by element, from its gradient and
 *   so many states of its shape, with this many FLOPs per element.  The
 *   formula of that name is in codegen/rules/kernels/optimizers.h.
 * OPTIMIZER(ID, name, op, coupled, state0, state1, uses, defaults)
 *   What --optimizer names.  op: what updates; coupled 1: weight decay is part
 *   of the gradient.  state0, state1: names of the states, or NULL.  uses: its
 *   settings among those that some optimizers lack.  defaults: SET(setting,
 *   value) for all that differ from AdamW's.
 *
 * An includer defines one or both, which are undefined afterwards.  Of two
 * optimizers with one op, the coupled one comes first.
 *
 * Defaults are those of PyTorch; of Lion, of its paper.
 */
#ifndef UPDATE
#define UPDATE(id, text, states, flops)
#endif
#ifndef OPTIMIZER
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults)
#endif

UPDATE(SGD, "sgd", 0, 4)
UPDATE(SGDM, "sgdm", 1, 8)
UPDATE(ADAMW, "adamw", 2, 14)
UPDATE(LION, "lion", 1, 8)

OPTIMIZER(SGD, "sgd", SGD, 0, NULL, NULL, "", )
OPTIMIZER(SGDM, "sgdm", SGDM, 0, "m", NULL, "momentum nesterov",
          SET(momentum, 0.9))
OPTIMIZER(ADAM, "adam", ADAMW, 1, "m", "v", "beta1 beta2 eps",
          SET(weight_decay, 0))
OPTIMIZER(ADAMW, "adamw", ADAMW, 0, "m", "v", "beta1 beta2 eps", )
OPTIMIZER(LION, "lion", LION, 0, "m", NULL, "beta1 beta2",
          SET(lr, 1e-4) SET(beta2, 0.99))
OPTIMIZER(ADAFACTOR, "adafactor", ADAFACTOR, 0, "row", "col",
          "eps beta2_decay clip_threshold eps2",
          SET(lr, 1e-2) SET(eps, 0x1p-23))

#undef UPDATE
#undef OPTIMIZER
