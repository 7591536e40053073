/* Processes that the same parent has started, as far as the system tells. */
#ifndef CKR_SIBLING_H
#define CKR_SIBLING_H

/* The number of one that is stopped; 0: there is none. */
long sibling_stopped(void);

#endif
