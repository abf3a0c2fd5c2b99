/* A library with variables of its own: one that the program copies to itself, one of each thread. */
int sharedCounter = 5;
static int hiddenCounter = 6;
_Thread_local int libLocal = 50;
static _Thread_local int libStatic = 60;

int library_step(int by) {
    libLocal += by;
    libStatic -= by;
    return ++sharedCounter + ++hiddenCounter + libLocal + libStatic;
}
