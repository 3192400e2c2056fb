create table offer_counts (
  project_id text not null,
  endpoint_id text not null,
  day date not null,
  challenges bigint not null,
  refusals bigint not null,
  primary key (project_id, day, endpoint_id)
);
comment on table offer_counts is 'Challenges of an endpoint in a day (UTC), and payments that were refused before a claim.';
