-- Holds the position in the WAL after a request that may have written. A replica that has not reached this position may
-- lack data that the project itself has written. The service writes the table only with DATABASE_REPLICA_URL.
create table project_writes (
  project_id text primary key references projects,
  lsn pg_lsn not null
);
