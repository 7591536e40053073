/* Room lora: adapters beside products (--lora).
 *
 * in      a canonical forward graph
 * out     the same with two small products beside each product that was named,
 *         and their weights, which alone are trained
 * must not know losses, gradients, memory and machines
 */
#ifndef PASSES_LORA_LORA_H
#define PASSES_LORA_LORA_H

#include "passes/pass.h"

PassFn pass_lora;

#endif
