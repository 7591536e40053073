/* Room planner: keep or recompute each activation.
 *
 * in      an ordered training graph, costs, a budget
 * out     the same graph with clones of forward nodes in backward; bounds, the
 *         curve, presets; or a refusal with remedies
 * must not know ONNX, code and files
 */
#ifndef PASSES_PLANNER_PLANNER_H
#define PASSES_PLANNER_PLANNER_H

#include "passes/pass.h"

PassFn pass_plan;

#endif
