/* Room base: utilities of libckr and of ckrun.  This header: error messages,
 * one per context.
 *
 * in      types of the ABI, statuses of ckr.h
 * out     messages, blocks of memory, element types, random numbers
 * must not know models and files
 */
#ifndef RUNTIME_BASE_ERR_H
#define RUNTIME_BASE_ERR_H

#include "runtime/ckr.h"

struct err {
	char text[2048];
	/* in a run of several processes: all of them have this message;
	 * another one prints it */
	bool known, mute;
};

/* Set the message and return `status`; "%m" is the text of errno. */
ckr_status err_set(struct err *, ckr_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* CKR_ENOMEM, in words. */
ckr_status err_no_memory(struct err *);
/* A name from a file, made fit for a message: control characters and bytes
 * above 126 become "\xNN"; cut at size.  Returns buf. */
const char *err_name(char *buf, size_t size, const char *name);

/* Append to the text in buf, cut at size. */
void err_append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define NAME_TEXT 200

#define CKR_TRY(call) \
	do { \
		ckr_status try_ = (call); \
		if (try_ != CKR_OK) \
			return try_; \
	} while (0)

#endif
