module Shop
  module Database
    class << self
      # Safe in several processes at once: the first does the work, the others
      # wait for it.
      def prepare
        FileUtils.mkdir_p File.dirname(path)
        File.open("#{path}.lock", "w") do |lock|
          lock.flock(File::LOCK_EX)
          fill unless filled?
        end
      end

      def path
        ActiveRecord::Base.connection_db_config.database
      end

      private

      def filled?
        LineItem.table_exists? && LineItem.exists?
      end

      def fill
        ActiveRecord::Migration.suppress_messages { load File.expand_path("../../db/schema.rb", __dir__) }
        load File.expand_path("../../db/seeds.rb", __dir__)
      end
    end
  end
end
