/* Connections between all processes behind the table of link.h: for those that
 * were started by what knows of no MPI, as torchrun. */
#ifndef CKR_SOCKET_H
#define CKR_SOCKET_H

#include "runtime/team/link.h"

extern const struct ckr_link socket_link;

#endif
