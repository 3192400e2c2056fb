-- Holds the network of the caller who registered an OAuth client, or who first named a client metadata document. If one
-- of these tables is full, a new row replaces a row of the network with the most rows. The empty text means that the
-- network is not known, or that the client is in use.
alter table oauth_clients add column network text default '' not null check (length(network) <= 50);
alter table oauth_client_documents add column network text default '' not null check (length(network) <= 50);
