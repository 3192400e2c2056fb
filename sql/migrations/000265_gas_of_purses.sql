-- Holds the gas of the calls (cancellations and transfers) that the service has sent for the purse of a project in a
-- UTC day. The till (the part for received payments) has its own count, so that payments of strangers do not stop the
-- purse.
create table purse_gas (
  project_id text primary key references projects (id) on delete cascade,
  day date not null,
  gas bigint not null
) with (fillfactor = 50);
comment on table purse_gas is 'The gas of the calls that the service has sent for the purse of a project in one UTC day.';
