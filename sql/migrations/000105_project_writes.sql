-- Where the WAL stood when a request that may have written was answered. A replica that has not come this far may lack
-- what the project wrote itself. Kept only with DATABASE_REPLICA_URL.
create table project_writes (
  project_id text primary key references projects,
  lsn pg_lsn not null
);
