set extra_float_digits = 3;

set application_name = 'DataGrip 2024.1';

select current_database() as a, current_schemas(false) as b, version() is not null as c;

-- hides id, is_template, database_name
select N.oid::bigint as id, datname as name, D.description, datistemplate as is_template, datallowconn as allow_connections, pg_catalog.pg_get_userbyid(N.datdba) as "owner"
from pg_catalog.pg_database N
  left join pg_catalog.pg_shdescription D on N.oid = D.objoid
where datname = pg_catalog.current_database()
order by case when datname = pg_catalog.current_database() then -1::bigint else N.oid::bigint end;

-- hides id
-- differs: the owner of the schema public is the only role
select N.oid::bigint as id,
       N.xmin is not null as state_number,
       nspname as name,
       D.description,
       pg_catalog.pg_get_userbyid(N.nspowner) as "owner"
from pg_catalog.pg_namespace N
  left join pg_catalog.pg_description D on N.oid = D.objoid
where nspname in ('public', 'sales')
order by case when nspname = pg_catalog.current_schema() then -1::bigint else 1 end, nspname;

-- hides txid
select case
  when pg_catalog.pg_is_in_recovery()
    then null
  else
    (pg_catalog.txid_current() % (2^32)::bigint)::varchar::bigint > 0
  end as current_txid;

-- hides id
select
    T.oid::bigint as id, relkind as kind, T.relname as name,
    pg_catalog.array_to_string(T.reloptions, ',') as options,
    T.relispartition as is_partition,
    pg_catalog.pg_get_partkeydef(T.oid) as partition_key,
    pg_catalog.pg_get_expr(T.relpartbound, T.oid) as partition_expression,
    T.relpersistence as persistence,
    (select am.amname from pg_catalog.pg_am am where am.oid = T.relam) as access_method,
    case when T.relkind in ('r', 'p') then pg_catalog.pg_get_userbyid(T.relowner) else null end is not null as owned
from pg_catalog.pg_class T
where relnamespace = {namespace public}::oid
  and relkind in ('r', 'm', 'v', 'f', 'p')
order by relname;

-- hides table_id, type_id
with T as ( select distinct
              T.oid as table_id,
              T.relname as table_name
            from pg_catalog.pg_class T
               , pg_catalog.pg_attribute A
            where T.relnamespace = {namespace sales}::oid
              and T.relkind in ('r', 'm', 'v', 'f', 'p')
              and A.attrelid = T.oid )
select T.table_id,
       C.attnum as column_position,
       C.attname as column_name,
       C.xmin is not null as column_state_number,
       C.atttypmod as type_mod,
       C.attndims as dimensions_number,
       pg_catalog.format_type(C.atttypid, C.atttypmod) as type_spec,
       C.atttypid as type_id,
       C.attnotnull as mandatory,
       pg_catalog.pg_get_expr(D.adbin, T.table_id) as column_default_expression,
       not C.attislocal as column_is_inherited,
       C.attfdwoptions as options,
       C.attisdropped as column_is_dropped,
       C.attidentity as identity_kind,
       C.attgenerated as generated
from T
  join pg_catalog.pg_attribute C on T.table_id = C.attrelid
  left join pg_catalog.pg_attrdef D on (C.attrelid, C.attnum) = (D.adrelid, D.adnum)
where attnum > 0
order by table_name, attnum;

-- hides table_id, index_id
select tab.oid::bigint table_id,
       tab.relkind table_kind,
       ind_stor.relname index_name,
       ind_head.indexrelid index_id,
       ind_stor.xmin is not null state_number,
       ind_head.indisunique is_unique,
       ind_head.indisprimary is_primary,
       ind_head.indnullsnotdistinct nulls_not_distinct,
       pg_catalog.pg_get_expr(ind_head.indpred, ind_head.indrelid) as condition,
       (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar from pg_catalog.pg_inherits where ind_stor.oid = inhrelid) as ancestors,
       ind_stor.reltablespace tablespace_id,
       opcmethod as access_method_id
from pg_catalog.pg_class tab
         join pg_catalog.pg_index ind_head on ind_head.indrelid = tab.oid
         join pg_catalog.pg_class ind_stor on tab.relnamespace = ind_stor.relnamespace and ind_stor.oid = ind_head.indexrelid
         left join pg_catalog.pg_opclass on pg_opclass.oid = ANY(indclass)
where tab.relnamespace = {namespace public}::oid
        and tab.relkind in ('r', 'm', 'v', 'p')
        and ind_stor.relkind in ('i', 'I')
order by index_name, access_method_id;

-- hides index_id
select ind_head.indexrelid index_id,
       k col_idx,
       k <= indnkeyatts in_key,
       ind_head.indkey[k-1] column_position,
       ind_head.indoption[k-1] column_options,
       ind_head.indcollation[k-1] as collation,
       colln.nspname as collation_schema,
       collname as collation_str,
       ind_head.indclass[k-1] as opclass,
       case when opcdefault then null else opcn.nspname end as opclass_schema,
       case when opcdefault then null else opcname end as opclass_str,
       case
           when indexprs is null then null
           when ind_head.indkey[k-1] = 0 then chr(27) || pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true)
           else pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true)
       end as expression,
       amcanorder can_order
from pg_catalog.pg_index ind_head
         join pg_catalog.pg_class ind_stor
              on ind_stor.oid = ind_head.indexrelid
cross join unnest(ind_head.indkey) with ordinality u(u, k)
left join pg_catalog.pg_collation
on pg_collation.oid = ind_head.indcollation[k-1]
left join pg_catalog.pg_namespace colln on collnamespace = colln.oid
cross join pg_catalog.pg_indexam_has_property(ind_stor.relam, 'can_order') amcanorder
left join pg_catalog.pg_opclass
         on pg_opclass.oid = ind_head.indclass[k-1]
left join pg_catalog.pg_namespace opcn on opcnamespace = opcn.oid
where ind_stor.relnamespace = {namespace public}::oid
  and ind_stor.relkind in ('i', 'I')
order by ind_stor.relname, k;

-- hides table_id, con_id, ref_table_id, index_id
select T.oid table_id,
       relkind table_kind,
       C.oid::bigint con_id,
       C.xmin is not null con_state_id,
       conname con_name,
       contype con_kind,
       conkey con_columns,
       conindid index_id,
       confrelid ref_table_id,
       condeferrable is_deferrable,
       condeferred is_init_deferred,
       confupdtype on_update,
       confdeltype on_delete,
       connoinherit no_inherit,
       pg_catalog.pg_get_expr(conbin, T.oid) con_expression,
       confkey ref_columns,
       conexclop::int[] excl_operators,
       array(select unnest::regoper::varchar from unnest(conexclop)) excl_operators_str
from pg_catalog.pg_constraint C
         join pg_catalog.pg_class T
              on C.conrelid = T.oid
where relkind in ('r', 'v', 'f', 'p')
  and relnamespace = {namespace sales}::oid
  and contype in ('p', 'u', 'f', 'c', 'x')
  and connamespace = {namespace sales}::oid
order by conname;

-- hides sequence_id
select cls.oid as sequence_id, cls.relname as sequence_name,
       pg_catalog.format_type(sq.seqtypid, null) as data_type,
       sq.seqstart as start_value, sq.seqincrement as inc_value, sq.seqmin as min_value, sq.seqmax as max_value, sq.seqcache as cache_size, sq.seqcycle as cycle_option
from pg_catalog.pg_sequence sq join pg_class cls on sq.seqrelid = cls.oid
where cls.relnamespace = {namespace public}::oid order by 2;

-- hides view_id
select T.relkind as view_kind, T.oid as view_id, pg_catalog.pg_get_viewdef(T.oid, true) is not null as source_text
from pg_catalog.pg_class T join pg_catalog.pg_namespace N on T.relnamespace = N.oid
where N.oid = {namespace public}::oid and T.relkind in ('m','v') order by relname;

select D.objoid id, D.classoid = 'pg_class'::regclass as is_class, D.objsubid, D.description
from pg_catalog.pg_description D
  join pg_catalog.pg_class C on D.objoid = C.oid
where C.relnamespace = {namespace public}::oid and C.relkind in ('r','m','v','p','f','i','I','S') order by D.description;

-- hides id, class_id, sub_kind
select T.oid as id, T.typname as name, T.typtype as sub_kind, T.typcategory as category, T.typrelid as class_id, T.typbasetype as base_type_id,
       case when T.typtype in ('c','e') then null else pg_catalog.format_type(T.typbasetype, T.typtypmod) end as definition,
       T.typndims as dimensions_number, T.typdefault as default_expression, T.typnotnull as mandatory
from pg_catalog.pg_type T
         left outer join pg_catalog.pg_class C on T.typrelid = C.oid
where T.typnamespace = {namespace public}::oid
  and (T.typtype in ('d','e') or C.relkind = 'c'::"char" or (T.typtype = 'b' and (T.typelem = 0 OR T.typcategory <> 'A')) or T.typtype = 'p' and not T.typisdefined)
order by 2;

-- hides enum_id
with types as (select distinct T.oid as type_id from pg_catalog.pg_type T where T.typnamespace = {namespace sales}::oid and T.typtype = 'e')
select types.type_id as enum_id, pg_catalog.array_agg(e.enumlabel::varchar order by e.enumsortorder) as labels
from types join pg_catalog.pg_enum e on e.enumtypid = types.type_id group by types.type_id;

with languages as (select oid as lang_oid, lanname as lang from pg_catalog.pg_language),
     routines as (select proname as r_name, prolang as lang_oid, oid as r_id, proargnames as arg_names, proargmodes as arg_modes, proargtypes::int[] as in_arg_types, proallargtypes::int[] as all_arg_types, pg_catalog.pg_get_expr(proargdefaults, 0) as arg_defaults, provariadic as arg_variadic_id, prorettype as ret_type_id, proisstrict as is_strict, prosecdef as is_security_definer, provolatile as volatile_kind, prokind as kind, prosqlbody is not null as has_body
                  from pg_catalog.pg_proc where pronamespace = {namespace public}::oid)
select * from routines natural join languages;

-- hides object_id
select T.oid as object_id, T.relacl::varchar[] is null as no_acl from pg_catalog.pg_class T where relnamespace = {namespace public}::oid and relname = 'teams';

select distinct name, comment is not null, default_version is not null from pg_catalog.pg_available_extensions where name = 'plpgsql';

select operator.oprname from pg_catalog.pg_operator operator where operator.oprname OPERATOR(pg_catalog.~) '^(\|\||->>)$' group by 1 order by 1;

-- hides id
select oid::bigint as id, collname as name, collprovider as provider, collencoding as encoding, collcollate, collctype, collisdeterministic from pg_catalog.pg_collation where collname in ('C','POSIX') order by 2;

select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, rolvaliduntil, rolbypassrls, rolconfig from pg_catalog.pg_roles where rolname = 'pg_read_all_data';

select t.* from public.teams t limit 501;

select "Id", "order", "group by" from "Odd Names";

-- differs: there is one level
SHOW TRANSACTION ISOLATION LEVEL;

select is_grantable, privilege_type from information_schema.table_privileges where table_name = 'teams' and grantee = current_user order by 2;

select count(*) from information_schema.columns where table_schema = 'public';

insert into teams (title) values ('x'),('y') returning id, title;

SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;

select name, setting from pg_settings where name = 'default_transaction_isolation';
