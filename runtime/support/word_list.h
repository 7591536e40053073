/* Lists of words in one string, separated by spaces. */
#ifndef RUNTIME_SUPPORT_WORD_LIST_H
#define RUNTIME_SUPPORT_WORD_LIST_H

#include <stdbool.h>
#include <string.h>

static inline bool
word_is_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	if (!n || strchr(word, ' '))
		return false;
	for (const char *s = list; (s = strstr(s, word)); s += n)
		if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' '))
			return true;
	return false;
}

#endif
