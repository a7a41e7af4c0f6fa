// SQLite in memory: inserts, an index, joins and aggregates.
//@ levels: -O2
//@ build: $CC $FLAGS -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -c $SOURCES/sqlite3/sqlite3.c; $CC $FLAGS -I$SOURCES/sqlite3 $DIR/sqlite.c sqlite3.o -lm -o program
//@ capture: sqlite3VdbeExec@*
//@ capture: sqlite3GetToken@*
//@ loop-refused: * ~ several entries
//@ codelets: 2
#include "input.h"
#include "sqlite3.h"

static int row(void *unused, int n, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < n; i++)
        printf("%s%c", values[i] ? values[i] : "null", i + 1 < n ? ' ' : '\n');
    return 0;
}

int main(void) {
    sqlite3 *db;
    char *message = NULL;
    if (sqlite3_open(":memory:", &db))
        return 1;
    const char *statements[] = {
        "create table a(id integer primary key, name text, value real)",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) "
        "insert into a select i, 'name' || (i * 7919 % 1000), i * 0.5 from n",
        "create index names on a(name)",
        "select count(*), sum(value), min(name), max(name) from a where name like 'name1%'",
        "select x.name, count(*) c from a x join a y on x.name = y.name where x.id < 100 group by x.name order by c desc, 1 limit 5",
        "update a set value = value * 2 where id % 3 = 0",
        "delete from a where id % 5 = 0",
        "select sum(value), avg(length(name)), count(distinct name) from a",
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (sqlite3_exec(db, statements[i], row, NULL, &message)) {
            printf("%s\n", message);
            return 2;
        }
    sqlite3_close(db);
    return 0;
}
