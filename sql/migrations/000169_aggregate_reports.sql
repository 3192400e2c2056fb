-- Holds the aggregate reports of other mail hosts about the domains of the service (RFC 7489 §7.2, RFC 8460). The
-- reports tell who sends mail with these domains, and which mail passes the checks.

create table aggregate_reports (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('dmarc', 'tls')),
  domain text not null check (length(domain) <= 255),
  -- Holds the domain from which the mail with the report came.
  reporter text not null check (length(reporter) <= 255),
  report_id text not null check (length(report_id) <= 255),
  begins_at timestamptz(3) not null,
  ends_at timestamptz(3) not null,
  -- Tells whether DMARC proves the reporter, because anybody can write a report in the name of a large mail host.
  is_proven boolean not null,
  received_at timestamptz(3) not null default clock_timestamp(),
  unique (kind, domain, reporter, report_id)
);
create index aggregate_reports_age on aggregate_reports (received_at);
create index aggregate_reports_end on aggregate_reports (ends_at);
comment on table aggregate_reports is 'DMARC and TLS reports that other mail hosts sent about a domain of ours. `is_proven`: DMARC vouches for the reporter.';

create table aggregate_report_rows (
  report_id bigint not null references aggregate_reports (id) on delete cascade,
  place int not null,
  source text check (length(source) <= 255),
  count int not null check (count >= 0),
  is_passed boolean not null,
  result text not null check (length(result) <= 255),
  primary key (report_id, place)
);
comment on table aggregate_report_rows is 'The rows of aggregate reports: mails or sessions of one source, and whether they passed.';
