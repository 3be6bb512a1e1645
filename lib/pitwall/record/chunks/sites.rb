# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A place in the code with type and class of the objects allocated there, and what became of the objects.
    #
    # node:           of the stack tree; 0 for a site that is no place
    # type:           Ruby's own number of a type (T_STRING is 5)
    # class_name:     "" for objects that the program never sees
    # count:          objects allocated
    # old:            objects that survived three collections, at which Ruby promotes an object
    # freed:          objects freed
    # total_age, min_age, max_age: of freed and retained objects, in collections
    # slot_bytes:     in Ruby's heap
    # bytes:          slot_bytes and malloc'ed memory
    # retained:       objects that lived at the end
    # gc_ns:          garbage collection charged to the site
    # retained_bytes: the part of `bytes` that belongs to retained objects; nil where that was not recorded
    #
    # Where objects were sampled, all figures but gc_ns count the sample only.
    #
    # The work that collections did for the site's objects, nil where that was not recorded:
    #
    # started_ns:  marking time of the runs that the site's objects caused
    # minor_marks: young objects that lived when a minor run marked, added up over runs
    # major_marks: all objects that lived at a major run, added up over runs
    # lived:       objects that lived at any run, added up over runs
    # mallocs:     freed objects that had malloc'ed memory
    Site = Struct.new(:id, :node, :type, :class_name,
                      :count, :old, :freed, :total_age, :min_age, :max_age, :slot_bytes, :bytes, :retained, :gc_ns,
                      :retained_bytes, :started_ns, :minor_marks, :major_marks, :lived, :mallocs)

    class Site
      # In the order of a GCWK chunk, after the id.
      WORK = %i[started_ns minor_marks major_marks lived mallocs].freeze
      # In the order of an ALLO chunk, after the id. Older recordings lack the last.
      COUNTERS = (members - %i[id node type class_name] - WORK).freeze
      TYPES = { 1 => "T_OBJECT", 2 => "T_CLASS", 3 => "T_MODULE", 4 => "T_FLOAT", 5 => "T_STRING", 6 => "T_REGEXP",
                7 => "T_ARRAY", 8 => "T_HASH", 9 => "T_STRUCT", 10 => "T_BIGNUM", 11 => "T_FILE", 12 => "T_DATA",
                13 => "T_MATCH", 14 => "T_COMPLEX", 15 => "T_RATIONAL", 20 => "T_SYMBOL", 26 => "T_IMEMO",
                27 => "T_NODE", 28 => "T_ICLASS" }.freeze
      # Ids of sites that are no place in the program's code. Ids above NOBODY are places.
      # VM: objects that the VM allocates for itself. PITWALL: objects of Pitwall. OTHER: objects allocated when the
      # table of sites was full. NOBODY: collections that nobody caused, as nothing was allocated since the collection
      # before; they free garbage from before the recording, or from between two bursts.
      VM = 1
      PITWALL = 2
      OTHER = 3
      NOBODY = 4
      NAMES = { VM => "(VM internal)", PITWALL => "(Pitwall)", OTHER => "(other sites)", NOBODY => "(nobody)" }.freeze

      # "T_STRING"; "" for a site that is no place.
      #: () -> String
      def type_name = type.zero? ? "" : TYPES.fetch(type, "T_#{type}")

      # The name of a site that is no place, nil for other sites.
      #: () -> String?
      def special = NAMES[id]

      # Were the site's objects sampled, where one in so many was? Objects of the VM and of Pitwall are all counted.
      #: () -> bool
      def sampled? = id > PITWALL && id != NOBODY

      # Were the site's objects the program's? Those of the VM and of Pitwall are not.
      #: () -> bool
      def program? = id >= OTHER && id != NOBODY

      # Is the site a place in the program's code? The sites with a name are not.
      #: () -> bool
      def place? = id > NOBODY
    end

    module Chunks
      # SITE: where objects were allocated. The counters of a site stand in ALLO and GCWK. A later row of an id replaces
      # the earlier one, because a class may have got a name. A site's node and string may come in a later chunk.
      class Sites < Chunk
        NO_PLACE = [0, 0, 0].freeze
        private_constant :NO_PLACE

        type "SITE"
        # Rows of SITE, ALLO, GCWK and DUPS.
        limit :sites, 2_000_000
        # @return [Array<Site>] where objects were allocated and what became of them; empty where no object was followed
        offers :sites

        def initialize(...)
          super
          @places = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          ids, nodes, types, classes = %w[id node type class].map { |name| columns.column(count, name) }
          keep_last(@places, ids, :sites) { |at| [nodes[at], types[at], classes[at]] }
        end

        #: (^(Integer) -> String) -> void
        def settle(_payload_at)
          work = table(CollectionWork).by_site
          @sites = table(Allocations).by_site.map { |id, counters| site(id, counters, work[id]) }
        end

        private

        def site(id, counters, work)
          node, type, name = @places[id] || NO_PLACE
          nodes, strings = table(Nodes), table(Strings)
          lose if node >= nodes.size || name >= strings.size
          Site.new(id, nodes.known(node), type, strings.known(name), *counters, *work)
        end
      end
    end
  end
end
