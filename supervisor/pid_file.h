/* The setting `pid_file`. */
#ifndef SUPERVISOR_PID_FILE_H
#define SUPERVISOR_PID_FILE_H

/* path NULL or empty: nothing. Logs what is wrong; 0 or -errno. */
int pid_file_write(const char *path);
void pid_file_remove(const char *path);

#endif
