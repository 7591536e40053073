/* Error messages: one message per context.
 *
 * The folders base and file are utilities of libckr and of ckrun, which know no
 * model.  Of the rest of libckr, ckrun uses only ckr.h. */
#ifndef RUNTIME_BASE_ERR_H
#define RUNTIME_BASE_ERR_H

#include "runtime/ckr.h"

struct err {
	char text[2048];
	/* of a run of several processes: all have this message; another one
	 * tells it */
	bool known, mute;
};

/* Set the message and return `status`; "%m" tells errno. */
ckr_status err_set(struct err *, ckr_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A name from a file, made fit for a message: control characters and bytes
 * above 126 become "\xNN"; cut at size.  Returns buf. */
const char *err_name(char *buf, size_t size, const char *name);

#define NAME_TEXT 200

#define CKR_TRY(call) \
	do { \
		ckr_status try_ = (call); \
		if (try_ != CKR_OK) \
			return try_; \
	} while (0)

#endif
