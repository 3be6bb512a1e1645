# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # What formats with mappings tell of native frames: the shared object, its build id, and the address of a function
      # without a name.
      # @api private
      class SharedObjects
        #: (Array[Record::Segment]) -> void
        def initialize(segments)
          ids = segments.flat_map(&:shared_objects).group_by(&:path)
          @build_ids = ids.transform_values { |all| all.map(&:build_id).uniq }
        end

        # The build id of the object at that path. nil where objects with several were recorded, or where it has none.
        #: (String) -> String?
        def build_id(path)
          ids = @build_ids.fetch(path, [])
          ids.first if ids.size == 1 && ids != [""]
        end

        # The path of a native frame's object, nil of other frames.
        #: (Analyse::MethodInfo) -> String?
        def path(info) = (info.path if info.kind == Record::Frame::NATIVE && !info.path.empty?)

        # "libshop.so.1+0x1f40" → 0x1f40; 0 of a function with a name.
        #: (Analyse::MethodInfo) -> Integer
        def address(info)
          object, digits = info.name.match(/\A(.+)\+0x(\h{1,16})\z/)&.captures
          address = digits.to_s.hex
          object == File.basename(info.path) && info.name == format("%s+0x%x", object, address) ? address : 0
        end
      end
      private_constant :SharedObjects
    end
  end
end
