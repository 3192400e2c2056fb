-- Holds the network of the caller who made a request for consent. If the table is full, a new row replaces a row of the
-- network with the most rows. The empty text means that the network is not known.
alter table oauth_requests add column network text default '' not null check (length(network) <= 50);
