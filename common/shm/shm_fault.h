/* A mapped file that somebody cuts short, or for which there is no memory, answers an access with
 * SIGBUS. What is guarded here costs only its contents then: the file is made whole again, or else
 * memory of our own takes its place, and the access is repeated. */
#ifndef COMMON_SHM_SHM_FAULT_H
#define COMMON_SHM_SHM_FAULT_H

#include <stddef.h>

/* `fd` stays the caller's and open until the end of the guard; -1 or not writable: memory of our
 * own is all there is. More mappings than there are places (a process has one): not guarded. */
void shm_fault_guard(void *base, size_t size_bytes, int fd, int protection);
void shm_fault_unguard(const void *base);

#endif
